//! Where the kernel's own code lies.

use std::collections::BTreeMap;

use vocab::{Image, ImageKind, Offset, Pc};

/// The kernel's text and its modules, as /proc tells them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelLayout {
    text: Option<(u64, u64)>,
    modules: BTreeMap<u64, (u64, String)>,
    /// Procedures that let interrupts in again: start → end.
    blind: BTreeMap<u64, u64>,
}

/// Where the kernel lets interrupts in after keeping them out. A clock that interrupts cannot
/// sample inside such a stretch; what it would have seen there piles up on these procedures.
const LETS_INTERRUPTS_IN: [&str; 12] = [
    "do_syscall_64",
    "syscall_enter_from_user_mode",
    "syscall_exit_to_user_mode",
    "irqentry_exit_to_user_mode",
    "finish_task_switch",
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "_raw_read_unlock_irqrestore",
    "_raw_write_unlock_irqrestore",
    "handle_softirqs",
    "__do_softirq",
    "exc_page_fault",
];

impl KernelLayout {
    /// From the texts of `/proc/kallsyms` and `/proc/modules`. Both hide their addresses from
    /// users without the privilege: then there is no layout, and kernel samples stay unplaced.
    pub fn parse(kallsyms: &str, modules: &str) -> KernelLayout {
        KernelLayout {
            text: text_range(kallsyms),
            modules: module_ranges(modules),
            blind: blind_ranges(kallsyms),
        }
    }

    /// Of the lines of `/proc/kallsyms`, those that the layout is made from. The whole text is
    /// megabytes; these are a few hundred bytes, and parse to the same layout.
    pub fn lines_of_interest(kallsyms: impl Iterator<Item = String>) -> String {
        let mut kept = String::new();
        let mut close = false;
        for line in kallsyms {
            let name = line.split_ascii_whitespace().nth(2).unwrap_or_default();
            let opens = lets_interrupts_in(name);
            let is_end = ["_text", "_stext", "_etext", "_end"].contains(&name);
            if close || opens || is_end {
                kept.push_str(&line);
                kept.push('\n');
                close = opens;
            }
        }
        kept
    }

    /// Whether addresses were to be seen at all.
    pub fn is_known(&self) -> bool {
        self.text.is_some()
    }

    /// Where a module was loaded.
    pub fn module_start(&self, name: &str) -> Option<Pc> {
        self.modules.iter().find(|(_, (_, held))| held == name).map(|(&start, _)| Pc(start))
    }

    /// Whether an address is the kernel's half of memory, in every process alike.
    pub fn is_kernel_address(pc: Pc) -> bool {
        (pc.0 as i64) < 0
    }

    /// Whether samples here may belong to code before it that kept interrupts out.
    pub fn is_blind(&self, pc: Pc) -> bool {
        self.blind.range(..=pc.0).next_back().is_some_and(|(_, &end)| pc.0 < end)
    }

    /// Where the stretch that holds an address begins, and how far into it the address is.
    pub fn locate(&self, pc: Pc) -> Option<(u64, Offset)> {
        if let Some((start, end)) = self.text
            && (start..end).contains(&pc.0)
        {
            return Some((start, Offset(pc.0 - start)));
        }
        let (&start, (size, _)) = self.modules.range(..=pc.0).next_back()?;
        (pc.0 - start < *size).then(|| (start, Offset(pc.0 - start)))
    }

    /// The image and offset of a kernel address.
    pub fn find(&self, pc: Pc) -> Option<(Image, Offset)> {
        if let Some((start, end)) = self.text
            && (start..end).contains(&pc.0)
        {
            return Some((image(ImageKind::Kernel, "[kernel]"), Offset(pc.0 - start)));
        }
        let (start, (size, name)) = self.modules.range(..=pc.0).next_back()?;
        let offset = pc.0 - start;
        (offset < *size).then(|| (image(ImageKind::Module, &format!("[{name}]")), Offset(offset)))
    }
}

fn image(kind: ImageKind, path: &str) -> Image {
    Image { kind, path: path.into(), build_id: None }
}

/// `_text` or `_stext` to `_end` or `_etext`: everything that the kernel was linked as.
fn text_range(kallsyms: &str) -> Option<(u64, u64)> {
    let address = |wanted: &[&str]| {
        wanted.iter().find_map(|wanted| {
            kallsyms.lines().find_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let (address, _kind, name) = (words.next()?, words.next()?, words.next()?);
                (name == *wanted).then(|| u64::from_str_radix(address, 16).ok()).flatten()
            })
        })
    };
    let (start, end) = (address(&["_text", "_stext"])?, address(&["_end", "_etext"])?);
    (start != 0 && end > start).then_some((start, end))
}

fn lets_interrupts_in(name: &str) -> bool {
    // `name.isra.0` is the same procedure, specialised.
    let plain = name.split('.').next().unwrap_or(name);
    LETS_INTERRUPTS_IN.contains(&plain) && !name.contains(".cold")
}

/// From each such procedure to the next symbol.
fn blind_ranges(kallsyms: &str) -> BTreeMap<u64, u64> {
    let mut ranges = BTreeMap::new();
    let mut open: Option<u64> = None;
    for line in kallsyms.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Some(address) = u64::from_str_radix(address, 16).ok().filter(|&a| a != 0) else {
            continue;
        };
        if let Some(start) = open
            && address > start
        {
            ranges.insert(start, address);
            open = None;
        }
        if lets_interrupts_in(name) {
            open = Some(address);
        }
    }
    ranges
}

/// `name size references users state address`
fn module_ranges(modules: &str) -> BTreeMap<u64, (u64, String)> {
    let range = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let size = words.get(1)?.parse().ok()?;
        let start = u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok()?;
        (start != 0).then(|| (start, (size, words[0].to_owned())))
    };
    modules.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000100 t start\n\
                            ffffffff82000000 T _etext\nffffffff83000000 B _end\n";
    const MODULES: &str = "ext4 4096 1 - Live 0xffffffffc0000000\nbroken line\n";

    #[test]
    fn kernel_and_modules_are_told_apart() {
        let layout = KernelLayout::parse(KALLSYMS, MODULES);
        let (image, offset) = layout.find(Pc(0xffff_ffff_8100_0110)).unwrap();
        assert_eq!((image.kind, offset), (ImageKind::Kernel, Offset(0x110)));
        let (image, offset) = layout.find(Pc(0xffff_ffff_c000_0fff)).unwrap();
        assert_eq!((image.path.as_str(), offset), ("[ext4]", Offset(0xfff)));
        assert_eq!(layout.find(Pc(0xffff_ffff_c000_1000)), None);
        assert_eq!(layout.find(Pc(0xffff_fe00_0000_0000)), None);
    }

    #[test]
    fn the_lines_of_interest_give_the_same_layout() {
        let kallsyms = "ffffffff81000000 T _text\nffffffff81000010 T a\n\
                        ffffffff81000100 T finish_task_switch.isra.0\n\
                        ffffffff81000180 T b\nffffffff81000190 T c\n\
                        ffffffff81000200 T do_syscall_64\nffffffff81000210 T exc_page_fault\n\
                        ffffffff81000220 T d\nffffffff82000000 T _end\n";
        let kept = KernelLayout::lines_of_interest(kallsyms.lines().map(str::to_owned));
        assert!(!kept.contains(" a\n") && !kept.contains(" c\n"), "{kept}");
        let layout = KernelLayout::parse(kallsyms, MODULES);
        assert_eq!(KernelLayout::parse(&kept, MODULES), layout);
        let blind = |low: u64| layout.is_blind(Pc(0xffff_ffff_8100_0000 + low));
        assert_eq!(
            [0x10, 0x100, 0x17f, 0x180, 0x200, 0x21f, 0x220].map(blind),
            [false, true, true, false, true, true, false]
        );
    }

    #[test]
    fn hidden_addresses_give_no_layout() {
        let hidden = "0000000000000000 T _text\n0000000000000000 T _end\n";
        assert!(!KernelLayout::parse(hidden, "ext4 4096 1 - Live 0x0000000000000000\n").is_known());
        assert!(!KernelLayout::parse("", "").is_known());
    }
}
