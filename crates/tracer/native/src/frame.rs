//! The frame that a handler finds on its stack, and what becomes of it.

use crate::calls::After;
use crate::context::{Fault, Vectors};
use crate::guest;
use crate::signals::{Action, action, bit, give_up, set_action, set_kernel_mask};
use crate::thread::Thread;

/// What a handler is told.
pub(crate) struct Told<'a> {
    pub(crate) info: &'a [u8; 128],
    pub(crate) fault: &'a Fault,
    /// What the program blocks again when the handler has ended.
    pub(crate) mask: u64,
}

/// That a stack for handlers is given up while one of them runs.
pub(crate) const DISARMS: u64 = 1 << 31;

/// Offsets in the frame that the kernel makes, and its lengths.
mod layout {
    pub(super) const CONTEXT: u64 = 8;
    pub(super) const STACK: u64 = CONTEXT + 16;
    pub(super) const REGISTERS: u64 = CONTEXT + 40;
    pub(super) const VECTORS: u64 = REGISTERS + 184;
    pub(super) const MASK: u64 = REGISTERS + 256;
    pub(super) const INFO: u64 = MASK + 8;
    pub(super) const BYTES: u64 = INFO + 128;
    /// The registers by their numbers in the encoding, in the frame's order.
    pub(super) const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];
}

/// Puts a handler's frame on the program's stack and lets it go on there.
pub(crate) fn deliver(thread: &mut Thread, signal: i32, told: &Told<'_>) {
    let Told { info, fault, mask } = *told;
    let action = action(thread, signal);
    let rsp = thread.context.registers[4];
    let [stack, flags, len] = thread.signals.stack;
    let is_on_stack = rsp > stack && rsp <= stack.wrapping_add(len);
    let has_stack = flags & libc::SS_DISABLE as u64 == 0 && len > 0;
    let changes = action.flags & libc::SA_ONSTACK as u64 != 0 && has_stack && !is_on_stack;
    let top = if changes { stack.wrapping_add(len) } else { rsp.wrapping_sub(128) };
    let vectors_at = top.wrapping_sub(1024) & !63;
    let at = (vectors_at.wrapping_sub(layout::BYTES) & !15).wrapping_sub(8);
    let context = &thread.context;
    let mut words = vec![action.restorer, 7, 0];
    words.extend([stack, if has_stack { flags & DISARMS } else { flags }, len]);
    words.extend(layout::ORDER.map(|register| context.registers[register]));
    words.extend([context.pc, context.flags, 0x002b_0000_0000_0033, fault.error, fault.trap]);
    words.extend([mask, fault.address, vectors_at]);
    words.extend([0; 8]);
    words.push(mask);
    let vectors = saved_vectors(thread);
    let is_written = guest::write(vectors_at, &vectors)
        && guest::write_words(at, &words)
        && guest::write(at + layout::INFO, info);
    if !is_written {
        let fault = Fault { signal: libc::SIGSEGV as u64, ..Fault::default() };
        give_up(thread, &fault);
    }
    thread.teller.interrupted();
    // A handler begins with vectors and rounding as a program does.
    *thread.vectors() = Vectors::fresh();
    let registers = &mut thread.context.registers;
    registers[7] = signal as u64;
    registers[6] = at + layout::INFO;
    registers[2] = at + layout::CONTEXT;
    registers[0] = 0;
    registers[4] = at;
    thread.context.pc = action.handler;
    // Neither backwards nor step by step.
    thread.context.flags &= !0x500;
    let itself = if action.flags & libc::SA_NODEFER as u64 == 0 { bit(signal) } else { 0 };
    thread.signals.mask |= action.mask | itself;
    if action.flags & libc::SA_RESETHAND as u64 != 0 {
        let _ = set_action(thread, signal, Some(Action::default()));
    }
    if flags & DISARMS != 0 {
        thread.signals.stack = [0, libc::SS_DISABLE as u64, 0];
    }
}

/// The vectors as the kernel puts them into a frame, with the words that say how long they are.
fn saved_vectors(thread: &mut Thread) -> Vec<u8> {
    let mut bytes = thread.vectors().0.to_vec();
    let magic = [0x4650_5853_u32, 836, 7, 0, 832];
    for (place, word) in magic.iter().enumerate() {
        let at = 464 + place * 4;
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    // Handlers that know nothing of this word write to the older registers all the same.
    bytes[512] |= 3;
    bytes.extend(0x4650_5845_u32.to_le_bytes());
    bytes
}

/// The program's `rt_sigreturn`: everything as the frame has it.
pub(crate) fn leave_handler(thread: &mut Thread) -> After {
    // The handler's `ret` has taken the first word.
    let at = thread.context.registers[4].wrapping_sub(8);
    let frame = guest::words::<18>(at + layout::REGISTERS);
    let rest = guest::words::<1>(at + layout::VECTORS);
    let mask = guest::words::<1>(at + layout::MASK);
    let stack = guest::words::<3>(at + layout::STACK);
    let (Some(registers), Some([vectors_at]), Some([mask])) = (frame, rest, mask) else {
        let fault = Fault { signal: libc::SIGSEGV as u64, ..Fault::default() };
        return give_up(thread, &fault);
    };
    for (register, value) in layout::ORDER.iter().zip(registers) {
        thread.context.registers[*register] = value;
    }
    thread.context.pc = registers[16];
    // Only what a program may set.
    thread.context.flags = registers[17] & 0x0024_0dd5 | 0x202;
    let vectors = guest::read(vectors_at, 832);
    if vectors_at != 0 && vectors.len() == 832 {
        let own = &mut thread.vectors().0;
        own.copy_from_slice(&vectors);
        // What the processor would refuse.
        own[512] &= 7;
        own[513..576].fill(0);
        let control = u32::from_le_bytes([own[24], own[25], own[26], own[27]]) & 0xffff;
        own[24..28].copy_from_slice(&control.to_le_bytes());
    }
    // These two cannot be blocked.
    thread.signals.mask = mask & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    if let Some([start, flags, len]) = stack.filter(|[_, flags, _]| flags & DISARMS != 0) {
        thread.signals.stack = [start, flags, len];
    }
    set_kernel_mask(thread);
    After::GoesOn
}
