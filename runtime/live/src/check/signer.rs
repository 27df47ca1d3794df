//! Checks of the signer process: its policy, and what this system lacks to protect the keys in it.

use windvane_config::{Config, Mode};

use super::protection;
use super::report::Report;

/// Memory that the signer process locks, bytes. It was measured with 240 MiB of address space, most of
/// which is never used.
const LOCKED: u64 = 256 * 1024 * 1024;

/// Reports where the keys of a run will be, what may be signed, and how safe the keys are.
pub(super) fn signer(config: &Config, report: &mut Report) {
    if config.run.mode == Mode::Paper {
        return;
    }
    if config.signer.in_process {
        return report.ok(
            "signer",
            "the trading process holds the keys and signs (signer.in_process)",
        );
    }
    match crate::signer::policy(config) {
        Ok(policy) => {
            report.ok(
                "signer",
                format!("a process of its own holds the keys; its policy: {policy}"),
            );
            for name in policy.without_quantity() {
                let found = format!(
                    "the policy has no max_quantity for {name}: an opening order of a market type is \
                     not signed, because its value is not known, and a sell counts with its own price"
                );
                report.warn("signer", found, "set max_quantity in the policy file");
            }
            protection::policy(&policy, report);
        }
        Err(error) => report.wrong("signer", error.to_string(), "correct the policy file"),
    }
    for missing in windvane_sandbox::probe().missing {
        let found = format!(
            "{} is missing ({}): {}",
            missing.feature,
            missing.reason,
            meaning(missing.feature)
        );
        report.warn("signer", found, missing.what_to_do);
    }
    if let Some(found) = swappable(windvane_sandbox::lockable_memory()) {
        let mend =
            "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=512M), or use no swap space";
        report.warn("signer", found, mend);
    }
}

/// What a missing feature means for the keys in the signer process.
fn meaning(feature: &str) -> &'static str {
    match feature {
        "Landlock" => {
            "a fault in the signer could write the keys to a file, or read other files of its user"
        }
        "seccomp" => {
            "a fault in the signer could open a connection and send the keys, or start a program"
        }
        "hidden memory" => "other programs of the user can read the keys from the signer's memory",
        "no core dumps" => "a crash of the signer can write the keys to a file",
        _ => "a fault in the signer could do more harm, and keys could leave it",
    }
}

/// What a limit of locked memory means for the keys; `None` if it is large enough.
fn swappable(limit: Option<u64>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < LOCKED)?;
    Some(format!(
        "the limit of locked memory is {} KiB, and the signer needs {} KiB: keys can be written to the \
         swap space of this machine, where a thief of the disk finds them",
        limit / 1024,
        LOCKED / 1024
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_of_locked_memory_is_reported() {
        let text = swappable(Some(8 * 1024 * 1024)).unwrap();
        assert!(text.contains("8192 KiB") && text.contains("swap"), "{text}");
        assert_eq!(swappable(Some(LOCKED)), None);
        assert_eq!(swappable(None), None);
    }

    #[test]
    fn each_feature_of_the_sandbox_has_a_meaning_for_keys() {
        let general = meaning("another");
        for feature in ["Landlock", "seccomp", "hidden memory", "no core dumps"] {
            assert_ne!(meaning(feature), general);
        }
    }

    #[test]
    fn the_check_names_what_the_system_lacks() {
        let mut report = Report::default();
        let mut config = Config::default();
        config.run.mode = Mode::Live;
        signer(&config, &mut report);
        let offered = windvane_sandbox::probe();
        for missing in offered.missing {
            let is_named = |found: &str| found.contains(meaning(missing.feature));
            assert!(report.lines.iter().any(|line| is_named(&line.found)));
        }
        let locked = swappable(windvane_sandbox::lockable_memory());
        let is_named = |found: &String| report.lines.iter().any(|line| line.found == *found);
        assert!(locked.as_ref().is_none_or(is_named));
    }
}
