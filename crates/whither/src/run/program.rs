//! The program that the user named: where it is, and whether it can run.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use perf::ExecFailed;

use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, RUN_FAILED};

/// A program that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    /// The file.
    pub(crate) path: PathBuf,
    /// As the user wrote it.
    pub(crate) command: Vec<OsString>,
    /// What a script's first line names; none for a real program.
    pub(crate) interpreter: Option<String>,
}

/// Looks for it as a shell would.
pub(crate) fn find(command: &[OsString]) -> Result<Program, Failure> {
    let Some(name) = command.first() else {
        return Err(Failure::new(RUN_FAILED, "no program was named"));
    };
    let path = if name.as_bytes().contains(&b'/') {
        PathBuf::from(name)
    } else {
        search(name, std::env::var_os("PATH").as_deref())?
    };
    check(&path)?;
    let interpreter = interpreter(&path);
    Ok(Program { path, command: command.to_vec(), interpreter })
}

/// The first executable file of that name, as `execvp` looks for it.
fn search(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    let mut refused = None;
    for folder in path.into_iter().flat_map(std::env::split_paths) {
        let file = folder.join(name);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(failure) if failure.status == NOT_EXECUTABLE => refused = Some(failure),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        Failure::new(NOT_FOUND, format!("there is no program '{}' on the PATH", shown(name)))
            .remedy("name it with its path, or install it")
    }))
}

/// Whether the file is there and may be executed.
fn check(path: &Path) -> Result<(), Failure> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Failure::new(NOT_FOUND, format!("there is no file {}", path.display()))
        }
        _ => Failure::new(NOT_EXECUTABLE, format!("cannot look at {}: {error}", path.display())),
    })?;
    if metadata.is_dir() {
        let what = format!("{} is a folder, not a program", path.display());
        return Err(Failure::new(NOT_EXECUTABLE, what));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        let what = format!("{} is not executable", path.display());
        let remedy = format!("`chmod +x {}` if it is a program", path.display());
        return Err(Failure::new(NOT_EXECUTABLE, what).remedy(remedy));
    }
    Ok(())
}

/// What the `#!` line names.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// The kernel found the file and would not execute it.
pub(crate) fn exec_failure(program: &Program, failed: ExecFailed) -> Failure {
    let path = program.path.display();
    let error = io::Error::from_raw_os_error(failed.errno);
    match (error.kind(), &program.interpreter) {
        (io::ErrorKind::NotFound, Some(interpreter)) => Failure::new(
            NOT_EXECUTABLE,
            format!("{path} is a script, and its interpreter '{interpreter}' is not there"),
        ),
        (io::ErrorKind::NotFound, None) => Failure::new(
            NOT_EXECUTABLE,
            format!("{path} needs a loader (ELF interpreter) that is not on this machine"),
        ),
        (io::ErrorKind::PermissionDenied, _) => {
            Failure::new(NOT_EXECUTABLE, format!("{path} may not be executed by this user"))
        }
        _ if failed.errno == 8 => Failure::new(
            NOT_EXECUTABLE,
            format!("{path} is neither a program for this machine nor a script with a #! line"),
        )
        .remedy("name its interpreter first, as in `whither run -- sh SCRIPT`"),
        _ => Failure::new(NOT_EXECUTABLE, format!("{path} cannot be executed: {error}")),
    }
}

impl Program {
    /// As one line.
    pub(crate) fn shown(&self) -> String {
        self.command.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ")
    }

    /// Strings for the kernel: path, arguments, environment.
    pub(crate) fn for_exec(&self) -> Result<(CString, Vec<CString>, Vec<CString>), Failure> {
        let string = |bytes: Vec<u8>| {
            CString::new(bytes)
                .map_err(|_| Failure::new(RUN_FAILED, "an argument holds a zero byte"))
        };
        let path = string(self.path.as_os_str().as_bytes().to_vec())?;
        let arguments: Result<_, _> =
            self.command.iter().map(|word| string(word.as_bytes().to_vec())).collect();
        let environment: Result<_, _> = std::env::vars_os()
            .map(|(key, value)| {
                let mut pair = key.into_vec();
                pair.push(b'=');
                pair.extend(value.into_vec());
                string(pair)
            })
            .collect();
        Ok((path, arguments?, environment?))
    }
}

fn shown(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str) -> u8 {
        find(&[name.into()]).unwrap_err().status
    }

    #[test]
    fn a_missing_program_is_127_and_one_that_cannot_run_is_126() {
        assert_eq!(status("no-such-program-anywhere"), NOT_FOUND);
        assert_eq!(status("/no/such/file"), NOT_FOUND);
        assert_eq!(status("/etc/passwd"), NOT_EXECUTABLE);
        assert_eq!(status("/etc"), NOT_EXECUTABLE);
    }

    #[test]
    fn a_name_is_looked_for_on_the_path() {
        assert!(find(&["sh".into(), "-c".into()]).unwrap().path.ends_with("sh"));
    }
}
