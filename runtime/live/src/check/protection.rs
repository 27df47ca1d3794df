//! Checks of what protects the keys: what the system lacks, the folders of key files, and the signer's
//! policy. None of them prevents a run.

use std::path::PathBuf;

use windvane_config::{Config, Secret, can_erase_secrets};
use windvane_files::Others;
use windvane_sandbox::InForce;
use windvane_signer::Policy;

use super::report::Report;
use crate::confinement::{self, RunFiles};

/// Reports what will confine the processes of a run, and what the system lacks for it.
pub(super) fn offered(offered: &InForce, report: &mut Report) {
    for missing in &offered.missing {
        let (feature, reason, means) = (missing.feature, &missing.reason, missing.means);
        let found = format!("{feature} is missing ({reason}): {means}");
        report.warn("confinement", found, missing.what_to_do);
    }
    let later = offered.not_restricted();
    if let (Some(version), false) = (offered.landlock, later.is_empty()) {
        let found = format!(
            "Landlock has version {version} of its interface, and version 6 restricts more: {}",
            later.join("; ")
        );
        report.warn("confinement", found, "use Linux 6.12 or later");
    }
    if offered.is_complete() {
        report.ok("confinement", format!("in force during a run: {offered}"));
    }
}

/// Reports how secrets could be read or replaced by others.
pub(super) fn secrets(config: &Config, files: &[PathBuf], report: &mut Report) {
    let is_variable = |secret: &&Secret| matches!(secret, Secret::Env(_));
    if config.secrets().iter().any(is_variable)
        && let Err(error) = can_erase_secrets()
    {
        let found = format!(
            "secrets cannot be erased from the environment ({error}): other programs of this user can \
             read them there while a command runs"
        );
        let mend = "name a file or a credential as the source of each secret";
        report.warn("keys", found, mend);
    }
    for file in config.secret_files() {
        // A file that cannot be found is reported where it is read.
        let Ok(Some(others)) = windvane_files::others_in_folder_of(&file) else {
            continue;
        };
        let may = match others {
            Others::See => "see that it is there and when it changes, but cannot read it",
            Others::Change => {
                "remove it or put another file in its place: the next start may be refused, or use a \
                 key that you replaced"
            }
        };
        let found = format!(
            "{}: the folder of this secret is open to other users, who may {may}",
            file.display()
        );
        let mend = "put it into a folder that only this user may use (chmod 700), below folders that \
                    nobody else may change";
        report.warn("keys", found, mend);
    }
    readable_keys(config, files, report);
}

/// Reports which files of the configuration, and which modules, other users may change or replace.
pub(super) fn open_files(config: &Config, files: &[PathBuf], report: &mut Report) {
    for file in crate::open_files::open_files(config, files) {
        let found =
            format!("{file}. Other users could decide what the next start or reload trades");
        let mend = "run `chmod go-w` on it, and keep it in a folder that only root and this user may \
                    change";
        report.warn("files", found, mend);
    }
}

/// Reports keys that the trading process may read.
fn readable_keys(config: &Config, files: &[PathBuf], report: &mut Report) {
    let files = RunFiles {
        files: files.to_vec(),
        ..RunFiles::default()
    };
    for file in confinement::readable_keys(config, &files) {
        let found = format!(
            "{}: the trading process may read this key although only the signer needs it, because it must \
             read files in the same folder or below /etc",
            file.display()
        );
        let mend = "move it out of /etc and of the folders of the configuration and of modules, or use a \
                    credential of systemd";
        report.warn("keys", found, mend);
    }
}

/// Reports what the signer's policy cannot limit.
pub(super) fn policy(policy: &Policy, report: &mut Report) {
    if !policy.has_unlimited_spot_sells() {
        return;
    }
    report.warn(
        "signer",
        "the policy allows spot orders. If this key may also trade futures, a taken-over run can send a \
         signed spot sell as a futures order, which no limit of the policy holds: it opens a short up to \
         the margin",
        "give spot a key that may not trade futures, in a run of its own",
    );
}

#[cfg(test)]
mod tests {
    use windvane_config::Overrides;
    use windvane_sandbox::Missing;

    use super::super::report::Verdict;
    use super::*;

    #[test]
    fn a_missing_protection_says_what_it_means() {
        let mut report = Report::default();
        let missing = Missing {
            feature: "seccomp",
            reason: "too old".to_owned(),
            means: "a taken-over run may trace",
            what_to_do: "use a newer kernel",
        };
        let found = InForce {
            landlock: Some(3),
            missing: vec![missing],
            ..InForce::default()
        };
        offered(&found, &mut report);
        let [seccomp, landlock] = report.lines.try_into().unwrap();
        assert_eq!(
            (seccomp.verdict, landlock.verdict),
            (Verdict::Warn, Verdict::Warn)
        );
        assert_eq!(
            seccomp.found,
            "seccomp is missing (too old): a taken-over run may trace"
        );
        assert!(landlock.found.contains("version 3"), "{}", landlock.found);
        assert!(
            landlock
                .found
                .contains("or a build of a strategy, may stop")
        );
    }

    #[test]
    fn a_policy_with_spot_orders_warns_of_futures() {
        let lines = |instrument: &str| {
            let text = format!(
                "[[strategy]]\nid = \"a\"\nmodule = \"a.wasm\"\ninstruments = [\"{instrument}\"]\n"
            );
            let config = Config::parse(&text, "test", &Overrides::default()).unwrap();
            let mut report = Report::default();
            policy(&crate::signer::policy(&config).unwrap(), &mut report);
            report.lines
        };
        assert!(lines("futures:BTCUSDT").is_empty());
        let [line] = lines("spot:BTCUSDT").try_into().unwrap();
        assert_eq!(line.verdict, Verdict::Warn);
        assert!(line.found.contains("opens a short"), "{}", line.found);
    }

    #[test]
    fn a_secret_in_an_open_folder_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "x").unwrap();
        let text = format!(
            "[run]\nmode = \"paper\"\n[account]\napi_secret = {{ file = \"{}\" }}\n",
            key.display()
        );
        let config = Config::parse(&text, "test", &Overrides::default()).unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let mut report = Report::default();
            secrets(&config, &[], &mut report);
            report.lines
        };
        assert!(with_mode(0o700).is_empty());
        for (mode, may) in [
            (0o755, "cannot read it"),
            (0o777, "another file in its place"),
        ] {
            let [line] = with_mode(mode).try_into().unwrap();
            assert_eq!(line.verdict, Verdict::Warn);
            assert!(line.found.contains(may), "{}", line.found);
        }
    }
}
