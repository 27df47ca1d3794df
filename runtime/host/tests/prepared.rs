//! A module that one process prepares and another loads, the limits of its instances, and the size
//! of the compile cache.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use support::{PATHS, guest};
use windvane_host::{
    CacheUse, Capabilities, Host, HostOptions, Limits, LoadError, PathChoice, wrap,
};

const DAY: Duration = Duration::from_hours(24);

fn host(folder: &Path, path: PathChoice) -> Host {
    Host::new(HostOptions {
        compile_cache: Some(folder.to_owned()),
        path,
        ..HostOptions::default()
    })
    .unwrap()
}

/// A component with `count` more instances of one more module with this content.
fn with_instances(content: &[u8], count: u8) -> Vec<u8> {
    let mut component = wrap(&guest("")).unwrap();
    let inner = wasmparser::Parser::new(0).parse_all(&component);
    let modules = inner
        .filter(|payload| matches!(payload, Ok(wasmparser::Payload::ModuleSection { .. })))
        .count();
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend_from_slice(content);
    let mut section = |id: u8, content: &[u8]| {
        component.push(id);
        let mut rest = content.len();
        while rest >= 0x80 {
            component.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        component.push(rest as u8);
        component.extend_from_slice(content);
    };
    section(1, &module);
    let mut instances = vec![count];
    for _ in 0..count {
        instances.extend([0, modules as u8, 0]);
    }
    section(2, &instances);
    component
}

#[test]
fn a_prepared_module_is_loaded_without_compiling() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    let limits = Limits::default();
    for path in PATHS {
        let module = guest("");
        let prepared = host(&folder, path).prepare(&module, &limits, Capabilities::ALL.into());
        let text = serde_json::to_string(&prepared.unwrap()).unwrap();
        let prepared = serde_json::from_str(&text).unwrap();
        let other = host(&folder, path);
        let loaded = other.load_prepared(&prepared, limits, Capabilities::ALL.into());
        let strategy = loaded.unwrap();
        assert_eq!(strategy.describe().name, "guest");
        assert_eq!(*strategy.cache_use(), CacheUse::Stored);
        let none = other.load_prepared(&prepared, limits, Capabilities::NONE.into());
        assert!(matches!(none, Err(LoadError::NotGranted { .. })));
        fs::remove_dir_all(&folder).unwrap();
        let gone = other.load_prepared(&prepared, limits, Capabilities::ALL.into());
        let text = gone.err().unwrap().to_string();
        assert!(text.contains("does not exist any more"), "{text}");
    }
}

#[test]
fn a_component_with_many_instances_is_loaded() {
    // A wrapped module has three instances; `componentize-py` makes 38.
    let component = with_instances(&[], 40);
    let host = support::host(PathChoice::Component);
    let strategy = host.load(&component, Limits::default(), Capabilities::ALL);
    assert_eq!(strategy.unwrap().describe().name, "guest");
    let old = Limits {
        instances: 32,
        ..Limits::default()
    };
    let refused = host.load(&component, old, Capabilities::ALL);
    assert!(refused.is_err());
}

#[test]
fn instances_with_many_globals_are_refused_before_they_are_made() {
    // 20,000 globals of 5 bytes each: type, mutability, i32.const 0, end.
    let count = 20_000_usize;
    let mut globals = vec![0xa0, 0x9c, 0x01];
    for _ in 0..count {
        globals.extend([0x7f, 0, 0x41, 0, 0x0b]);
    }
    let size = globals.len();
    let mut content = vec![
        6,
        (size & 0x7f) as u8 | 0x80,
        (size >> 7 & 0x7f) as u8 | 0x80,
    ];
    content.push((size >> 14) as u8);
    content.extend(globals);
    let limits = Limits {
        instance_bytes: 16 << 20,
        ..Limits::default()
    };
    let host = support::host(PathChoice::Component);
    let load = |count| host.load(&with_instances(&content, count), limits, Capabilities::ALL);
    assert!(load(20).is_ok());
    let refused = load(40).err().unwrap();
    let LoadError::Instances { bytes, limit } = refused else {
        panic!("{refused}");
    };
    assert!(bytes > 40 * 20_000 * 16, "{bytes}");
    assert_eq!(limit, 16 << 20);
}

/// Makes a file older. Returns its path.
fn age(folder: &Path, name: &str, age: Duration) -> std::path::PathBuf {
    let path = folder.join(name);
    if !path.exists() {
        fs::write(&path, vec![0; 1_000]).unwrap();
    }
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    path
}

#[test]
fn the_cache_is_pruned_by_age_and_size() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("native");
    let host = host(&folder, PathChoice::Direct);
    let limits = Limits::default();
    let used = host.load(&guest(""), limits, Capabilities::ALL).unwrap();
    let native = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    let native = native.file_name().into_string().unwrap();
    let native = age(&folder, &native, 90 * DAY);
    let old = age(&folder, "old", 31 * DAY);
    let longest_ago = age(&folder, "longest-ago", 3 * DAY);
    let recent = age(&folder, "recent", 2 * DAY);
    let new = age(&folder, "new", Duration::ZERO);
    let killed = age(&folder, "killed.1-0.tmp", DAY);

    assert_eq!(host.prune_cache(u64::MAX, 30 * DAY).unwrap(), 2);
    assert!(!old.exists() && !killed.exists() && longest_ago.exists());
    // The new file and the recent one fit; the one that was used before them does not.
    assert_eq!(host.prune_cache(2_000, 30 * DAY).unwrap(), 1);
    assert!(!longest_ago.exists() && recent.exists());
    // Files that a process has loaded stay, and so do files that were just stored.
    assert_eq!(host.prune_cache(0, 30 * DAY).unwrap(), 1);
    assert!(native.exists() && new.exists() && !recent.exists());
    drop(used);
    age(&folder, "new", Duration::ZERO);
    assert_eq!(host.prune_cache(0, 30 * DAY).unwrap(), 1);
    assert!(!native.exists());
}
