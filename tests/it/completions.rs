//! Shell completions and manual pages, as shells and `man` get them.

use std::{fs, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;

fn answer(arguments: &[&str]) -> String {
    let output = Command::cargo_bin("pinpoint").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_shell_learns_verbs_and_flags() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = answer(&["completions", shell]);
        for word in ["predict", "weights", "threshold", "pinpoint"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let output = Command::cargo_bin("pinpoint").unwrap().args(["completions", "tcsh"]).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn bash_takes_the_script_and_completes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("pinpoint.bash");
    fs::write(&script, answer(&["completions", "bash"])).unwrap();
    // What bash does when Tab is pressed after `pinpoint eval`.
    let pressed = format!(
        "source '{}' && COMP_WORDS=(pinpoint eval) && COMP_CWORD=1 && \
         _pinpoint pinpoint eval pinpoint && echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &pressed]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "evaluate", "{output:?}");
}

#[test]
fn the_manual_has_a_page_for_every_verb() {
    let page = answer(&["man"]);
    assert!(page.contains(".TH") && page.contains("SUBCOMMANDS"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    answer(&["man", "--out", folder.path().to_str().unwrap()]);
    for name in ["pinpoint", "pinpoint-train", "pinpoint-predict", "pinpoint-data-check"] {
        let page = fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("OPTIONS"), "{name}: {page}");
    }
}
