//! llvm-mca: a static schedule of one block, nothing run.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::machine::version_of;

/// llvm-mca on a fixed block.
#[derive(Debug, Clone, Copy)]
pub struct Mca;

impl Mca {
    /// Its version, or why it cannot run here.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub fn version(self) -> Result<String, String> {
        let text = version_of("llvm-mca", &["--version"])
            .map_err(|why| format!("{why}; install the package llvm"))?;
        // The first line names the project; the version follows in the next for some builds.
        let output = Command::new("llvm-mca").arg("--version").output();
        let all = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let line = all.ok().and_then(|all| {
            all.lines().find(|line| line.contains("version")).map(|line| line.trim().to_owned())
        });
        Ok(line.unwrap_or(text))
    }
}

/// The loop of the microbenchmark port-mixed, as llvm-mca reads it.
const BLOCK: &str = "\
add %r10, %rax
mov (%r13), %rbx
imul %r10, %rcx
mov %rdx, 64(%r13)
add %r10, %rsi
mov 8(%r13), %rdi
shl $1, %r8
add %r10, %r9
dec %r12
";

/// llvm-mca's reciprocal throughput of the block, in cycles, on a stated core.
///
/// # Errors
///
/// It is not installed, or its answer cannot be read.
pub fn block_throughput(core: &str) -> Result<f64, String> {
    let mut child = Command::new("llvm-mca")
        .args([&format!("-mcpu={core}"), "-mtriple=x86_64"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|_| "llvm-mca is not on the path; install the package llvm".to_owned())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(BLOCK.as_bytes()).map_err(|e| format!("llvm-mca: {e}"))?;
    }
    let output = child.wait_with_output().map_err(|e| format!("llvm-mca: {e}"))?;
    parse(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| format!("llvm-mca gave no throughput for the core {core}"))
}

fn parse(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Block RThroughput:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_throughput_is_read_from_its_line() {
        assert_eq!(parse("Iterations: 100\nBlock RThroughput: 2.5\n\n"), Some(2.5));
        assert_eq!(parse("Block RThroughput: -\n"), None);
    }
}
