//! `/proc/PID/maps`, from its text.

use perf::Mapping;
use vocab::{Pc, Pid};

/// Stretches of executable memory. Lines that make no sense are left out: the text is the kernel's,
/// but the paths in it are anybody's.
///
/// ```text
/// 55d4c8a00000-55d4c8a21000 r-xp 00002000 fe:00 131089    /usr/bin/gzip
/// ```
pub fn parse_maps(pid: Pid, text: &str) -> Vec<Mapping> {
    text.lines().filter_map(|line| parse_line(pid, line)).filter(|map| map.executable).collect()
}

fn parse_line(pid: Pid, line: &str) -> Option<Mapping> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start_matches(' ');
        let (word, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = after;
        (!word.is_empty()).then_some(word)
    };
    let (start, end) = word()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let executable = word()?.as_bytes().get(2) == Some(&b'x');
    let file_offset = hex(word()?)?;
    let (_device, _inode) = (word()?, word()?);
    let path = rest.trim_start_matches(' ');
    Some(Mapping {
        pid,
        start: Pc(start),
        length: end.checked_sub(start)?,
        file_offset,
        executable,
        // The kernel's records call memory without a name so.
        path: if path.is_empty() { "//anon".to_owned() } else { path.to_owned() },
        build_id: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_stretches_come_out_with_their_paths() {
        let text = "\
            55d4c8a00000-55d4c8a02000 r--p 00000000 fe:00 131089   /usr/bin/gzip\n\
            55d4c8a02000-55d4c8a21000 r-xp 00002000 fe:00 131089                     /a b/c (deleted)\n\
            7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
            7ffc1b5f2000-7ffc1b5f4000 r-xp 00000000 00:00 0                          [vdso]\n\
            nonsense\n9-1 r-xp 0 0 0 x\n";
        let maps = parse_maps(Pid(3), text);
        let paths: Vec<&str> = maps.iter().map(|map| map.path.as_str()).collect();
        assert_eq!(paths, ["/a b/c (deleted)", "//anon", "[vdso]"]);
        assert_eq!((maps[0].start, maps[0].length), (Pc(0x55d4_c8a0_2000), 0x1f000));
        assert_eq!((maps[0].file_offset, maps[0].pid), (0x2000, Pid(3)));
    }

    #[test]
    fn cut_and_garbled_lines_are_survived() {
        let line = "55d4c8a02000-55d4c8a21000 r-xp 00002000 fe:00 131089 /usr/bin/gzip";
        for end in 0..line.len() {
            for other in ["", "\u{0}", "-", " ", "zz", "ffffffffffffffff"] {
                let _ = parse_maps(Pid(1), &format!("{}{other}", &line[..end]));
            }
        }
    }
}
