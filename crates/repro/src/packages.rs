//! The system's packages: which are there, in which version, and how to get the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Installed packages and their versions.
#[derive(Debug, Clone, Default)]
pub struct Packages {
    installed: BTreeMap<String, String>,
}

impl Packages {
    /// Asks dpkg; a machine without dpkg has none.
    pub fn of_this_machine() -> Packages {
        let output = Command::new("dpkg-query")
            .args(["-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"])
            .output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        Packages { installed: parse(&text.unwrap_or_default()) }
    }

    /// The version of `package`, if it is installed.
    pub fn version(&self, package: &str) -> Option<&str> {
        self.installed.get(package).map(String::as_str)
    }

    /// The versions of `packages`; one that is not there has the version `none`.
    pub fn versions(&self, packages: &[String]) -> BTreeMap<String, String> {
        let of = |name: &String| self.version(name).unwrap_or("none").to_owned();
        packages.iter().map(|name| (name.clone(), of(name))).collect()
    }

    /// Those of `wanted` that are not installed.
    pub fn missing<'a>(&self, wanted: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        wanted.into_iter().filter(|name| self.version(name).is_none()).cloned().collect()
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (name, version, status) = (words.next()?, words.next()?, words.next()?);
        (status == "installed").then(|| (name.to_owned(), version.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Installs `missing` in one transaction. A package the system does not offer is left out of it;
/// what is still missing afterwards shows in a new [`Packages`].
///
/// # Errors
///
/// A sentence saying why the package manager could not do it.
pub fn install(missing: &BTreeSet<String>) -> Result<(), String> {
    if missing.is_empty() {
        return Ok(());
    }
    let mut offered = offered(missing);
    if offered.len() < missing.len() {
        // A fresh system knows no package until its lists are fetched.
        apt(&["update", "-q"], &[])?;
        offered = self::offered(missing);
    }
    if offered.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = offered.iter().map(String::as_str).collect();
    apt(&["install", "-y", "-q", "--no-install-recommends"], &names)
}

/// Those of `packages` for which the system knows a version to install.
fn offered(packages: &BTreeSet<String>) -> BTreeSet<String> {
    let output = Command::new("apt-cache").arg("policy").args(packages).env("LC_ALL", "C").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    candidates(&text)
}

/// Package names with a candidate in `apt-cache policy`'s text.
fn candidates(text: &str) -> BTreeSet<String> {
    let (mut name, mut found) = ("", BTreeSet::new());
    for line in text.lines() {
        if let Some(head) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            name = head;
        }
        if let Some(candidate) = line.trim().strip_prefix("Candidate: ")
            && candidate != "(none)"
        {
            found.insert(name.to_owned());
        }
    }
    found
}

fn apt(verb: &[&str], names: &[&str]) -> Result<(), String> {
    let wanted = format!("apt-get {} {}", verb.join(" "), names.join(" "));
    let mut command = as_root();
    let output = command
        .args(["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get"])
        .args(verb)
        .args(names)
        .output()
        .map_err(|e| format!("apt-get cannot be started ({e}); install by hand: {wanted}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said
        .lines()
        .find(|line| line.starts_with("E:") || line.starts_with("sudo:"))
        .unwrap_or("it gave no reason");
    Err(format!("`{}` failed: {reason}", wanted.trim()))
}

/// A command whose words run as root: by themselves where this process is root, else through
/// sudo, which must not stop to ask for a password.
fn as_root() -> Command {
    use std::os::unix::fs::MetadataExt;
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mut command = Command::new(if root { "env" } else { "sudo" });
    if !root {
        command.arg("-n");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_count() {
        let packages = parse("gzip 1.12-1 installed\nold 1 config-files\nbroken\n");
        assert_eq!(packages, BTreeMap::from([("gzip".to_owned(), "1.12-1".to_owned())]));
    }

    #[test]
    fn a_package_without_candidate_is_not_offered() {
        let text = "gzip:\n  Installed: 1\n  Candidate: 2\n  Version table:\n     2 500\n\
                    gone:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(candidates(text), BTreeSet::from(["gzip".to_owned()]));
    }
}
