//! Long output through the reader's pager.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Writes through $WHITHER_PAGER, $PAGER or less; as it is where there is none of them.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let variable = |name: &str| std::env::var_os(name);
    let Some(command) = choose(variable("WHITHER_PAGER"), variable("PAGER")) else {
        return io::stdout().write_all(text.as_bytes());
    };
    let mut pager = Command::new("/bin/sh");
    pager.arg("-c").arg(&command).stdin(Stdio::piped());
    // As git has it: leave at once what fits on a screen, keep colours, leave the screen as it was.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let Ok(mut child) = pager.spawn() else {
        return io::stdout().write_all(text.as_bytes());
    };
    let fed = child.stdin.take().map_or(Ok(()), |mut pages| pages.write_all(text.as_bytes()));
    let ended = child.wait()?;
    match fed {
        // The shell did not find it.
        _ if ended.code() == Some(127) => io::stdout().write_all(text.as_bytes()),
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// An empty word, or `cat`, asks for none.
fn choose(own: Option<OsString>, usual: Option<OsString>) -> Option<OsString> {
    let chosen = own.or(usual).unwrap_or_else(|| "less".into());
    (!chosen.is_empty() && chosen != "cat").then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_variable_goes_before_the_usual_one_and_cat_is_none() {
        let chosen = |own: Option<&str>, usual: Option<&str>| {
            choose(own.map(OsString::from), usual.map(OsString::from))
        };
        assert_eq!(chosen(None, None), Some("less".into()));
        assert_eq!(chosen(None, Some("more")), Some("more".into()));
        assert_eq!(chosen(Some("most"), Some("more")), Some("most".into()));
        assert_eq!(chosen(Some(""), Some("more")), None);
        assert_eq!(chosen(None, Some("cat")), None);
    }
}
