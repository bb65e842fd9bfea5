//! The program's signals.
//!
//! The kernel tells us; we tell the program when it is between two blocks, with a frame on its stack
//! such as the kernel makes. A fault is told at the instruction that faulted. A signal that waits to
//! be told is blocked meanwhile, so that none is lost.

use std::sync::{Mutex, PoisonError};

use crate::calls::After;
use crate::context::{Context, Fault, leave};
use crate::guest;
use crate::switch::{
    whither_call_from, whither_call_made, whither_call_not, whither_leave, whither_restore,
    whither_signal,
};
use crate::thread::{Thread, end_all};

/// What the program wants done about a signal, as the kernel is told.
#[derive(Clone, Copy, Default)]
pub(crate) struct Action {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    pub(crate) mask: u64,
}

const SIGNALS: usize = 65;
static ACTIONS: Mutex<[Action; SIGNALS]> =
    Mutex::new([Action { handler: 0, flags: 0, restorer: 0, mask: 0 }; SIGNALS]);

/// Signals that instructions raise. They are always ours.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// One thread's signals.
pub(crate) struct Signals {
    /// What the program blocks.
    pub(crate) mask: u64,
    /// The stack that it wants handlers to run on: start, flags, length.
    pub(crate) stack: [u64; 3],
    own_stack: Box<[u8]>,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals {
            mask: 0,
            stack: [0, libc::SS_DISABLE as u64, 0],
            own_stack: vec![0; 64 << 10].into(),
        }
    }
}

/// What waits to be told to a thread. Written by the handler.
struct Waiting {
    signals: u64,
    infos: [[u8; 128]; SIGNALS],
}

thread_local! {
    /// The thread's own, made before the first signal can come.
    static WAITING: std::cell::UnsafeCell<Waiting> =
        const { std::cell::UnsafeCell::new(Waiting { signals: 0, infos: [[0; 128]; SIGNALS] }) };
}

fn bit(signal: i32) -> u64 {
    1u64.checked_shl((signal - 1) as u32).unwrap_or(0)
}

pub(crate) fn fault_bits() -> u64 {
    FAULTS.iter().fold(0, |all, signal| all | bit(*signal))
}

/// Takes faults into our hands.
pub(crate) fn start() {
    FAULTS.iter().for_each(|signal| install(*signal, 0));
}

/// Has the kernel call us for a signal.
fn install(signal: i32, flags: u64) {
    let kept = (libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;
    let ours = (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | 0x0400_0000;
    let action = Action {
        handler: whither_signal as *const () as u64,
        flags: flags & kept | ours,
        restorer: whither_restore as *const () as u64,
        mask: !fault_bits(),
    };
    set_kernel_action(signal, &action);
}

fn set_kernel_action(signal: i32, action: &Action) -> i64 {
    let words = [action.handler, action.flags, action.restorer, action.mask];
    // SAFETY: the kernel reads four words of ours.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, words.as_ptr(), 0, 8) }
}

/// Makes this host's thread the program's: its context, and a stack for our handler.
pub(crate) fn adopt(context: *mut Context) {
    const ARCH_SET_GS: i32 = 0x1001;
    // SAFETY: GS is nobody else's, and the context lives as long as the thread.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, context) };
    // The first use of a thread's own variable may allocate, which a handler must not.
    WAITING.with(|_| ());
}

/// Lets the handler run on a stack of its own: the program's may be anywhere.
pub(crate) fn set_own_stack(thread: &mut Thread) {
    let stack = libc::stack_t {
        ss_sp: thread.signals.own_stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: thread.signals.own_stack.len(),
    };
    // SAFETY: memory that lives as long as the thread.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
}

/// What the kernel's signal calls: it interrupted translated code, or us.
pub(crate) unsafe extern "C" fn on_signal(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    let own: *mut Context;
    // SAFETY: GS is this thread's context from before its first signal on; the kernel's arguments are
    // what it says they are.
    unsafe {
        std::arch::asm!("rdgsbase {}", out(reg) own, options(nomem, nostack));
        let registers = &mut (*context).uc_mcontext.gregs;
        let host = registers[libc::REG_RIP as usize] as u64;
        if FAULTS.contains(&signal) && (*info).si_code > 0 {
            let is_translated = crate::is_translated(host);
            // A trap is reported behind its instruction.
            let behind = u64::from(signal == libc::SIGTRAP);
            (*own).fault = Fault {
                host: host - behind,
                signal: signal as u64,
                code: (*info).si_code.into(),
                address: (*info).si_addr() as u64,
                error: registers[libc::REG_ERR as usize] as u64,
                trap: registers[libc::REG_TRAPNO as usize] as u64,
            };
            if is_translated {
                (*own).why = leave::FAULT;
                registers[libc::REG_RIP as usize] = whither_leave as *const () as i64;
            } else {
                // Ours: there is no going on. Without a handler it happens again, for the last time.
                set_kernel_action(signal, &Action::default());
            }
            return;
        }
        let waiting = WAITING.with(std::cell::UnsafeCell::get);
        if let Some(place) = (*waiting).infos.get_mut(signal as usize) {
            std::ptr::copy_nonoverlapping(info.cast::<u8>(), place.as_mut_ptr(), 128);
        }
        (*waiting).signals |= bit(signal);
        (*own).has_signal = 1;
        // Blocked until it is told.
        let mask = (&raw mut (*context).uc_sigmask).cast::<u64>();
        *mask |= bit(signal);
        let calling = whither_call_from as *const () as u64..whither_call_made as *const () as u64;
        if calling.contains(&host) {
            registers[libc::REG_RIP as usize] = whither_call_not as *const () as i64;
        }
    }
}

/// What waits, as bits.
fn waiting() -> u64 {
    // SAFETY: this thread's own; a word that the handler only adds to.
    WAITING.with(|waiting| unsafe { std::ptr::read_volatile(&raw const (*waiting.get()).signals) })
}

/// Takes a signal that waits, with what the kernel said of it.
fn take(signal: i32) -> [u8; 128] {
    // SAFETY: this thread's own; the signal is blocked, so the handler does not write its part.
    WAITING.with(|waiting| unsafe {
        let waiting = &mut *waiting.get();
        waiting.signals &= !bit(signal);
        waiting.infos[signal as usize]
    })
}

/// Blocks what the program blocks, and what waits; never a fault.
pub(crate) fn set_kernel_mask(thread: &Thread) {
    let mask = (thread.signals.mask | waiting()) & !fault_bits();
    set_mask(mask);
}

fn set_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel reads and writes a word of ours each.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            8,
        );
    }
    before
}

/// Blocks everything; says what was blocked before.
pub(crate) fn block_all() -> u64 {
    set_mask(!fault_bits())
}

/// What the kernel blocks now.
pub(crate) fn kernel_mask() -> u64 {
    let mut mask = 0u64;
    // SAFETY: the kernel writes a word of ours.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8);
    }
    mask
}

/// Restores what `block_all` gave back.
pub(crate) fn unblock(mask: u64) {
    set_mask(mask);
}

/// The program's `rt_sigaction`.
pub(crate) fn set_action(signal: i32, new: Option<Action>) -> Result<Action, i64> {
    if !(1..SIGNALS as i32).contains(&signal) {
        return Err(-i64::from(libc::EINVAL));
    }
    if new.is_some() && matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
        return Err(-i64::from(libc::EINVAL));
    }
    let mut actions = ACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let before = actions[signal as usize];
    let Some(new) = new else { return Ok(before) };
    actions[signal as usize] = new;
    let is_handled = new.handler > 1;
    match () {
        () if is_handled => install(signal, new.flags),
        () if FAULTS.contains(&signal) => {}
        () => drop(set_kernel_action(
            signal,
            &Action {
                restorer: whither_restore as *const () as u64,
                flags: new.flags | 0x0400_0000,
                ..new
            },
        )),
    }
    Ok(before)
}

/// What an engine that was started by another finds: signals that are ignored stay so.
pub(crate) fn inherit() {
    let mut actions = ACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in 1..SIGNALS as i32 {
        let mut words = [0u64; 4];
        // SAFETY: the kernel writes four words of ours.
        let asked =
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, 0, words.as_mut_ptr(), 8) };
        if asked == 0 && words[0] == libc::SIG_IGN as u64 {
            actions[signal as usize].handler = words[0];
        }
    }
}

fn action(signal: i32) -> Action {
    ACTIONS.lock().unwrap_or_else(PoisonError::into_inner)[signal as usize]
}

/// Whether an interrupted call is made again when the signals that wait were told.
pub(crate) fn restarts_calls() -> bool {
    let waiting = waiting();
    let all = (1..SIGNALS as i32).filter(|signal| waiting & bit(*signal) != 0);
    all.map(action).all(|action| action.flags & libc::SA_RESTART as u64 != 0)
}

/// Tells the program of the signals that wait.
pub(crate) fn deliver_pending(thread: &mut Thread) {
    thread.context.has_signal = 0;
    for signal in 1..SIGNALS as i32 {
        if waiting() & bit(signal) != 0 {
            let info = take(signal);
            if action(signal).handler > 1 {
                deliver(thread, signal, &info, &Fault::default());
            }
        }
    }
    set_kernel_mask(thread);
}

/// Tells the program of a fault, or lets it die of it.
pub(crate) fn deliver_fault(thread: &mut Thread, fault: &Fault) -> After {
    let signal = fault.signal as i32;
    let is_blocked = thread.signals.mask & bit(signal) != 0;
    if action(signal).handler <= 1 || is_blocked {
        return give_up(thread, fault);
    }
    if fault.signal == libc::SIGTRAP as u64 {
        thread.context.pc += 1;
    }
    let mut info = [0; 128];
    info[0..4].copy_from_slice(&signal.to_le_bytes());
    info[8..12].copy_from_slice(&(fault.code as i32).to_le_bytes());
    info[16..24].copy_from_slice(&told_address(thread, fault).to_le_bytes());
    deliver(thread, signal, &info, fault);
    set_kernel_mask(thread);
    After::GoesOn
}

/// What a fault's address is for the program: that of the instruction where the instruction itself is
/// at fault.
fn told_address(thread: &Thread, fault: &Fault) -> u64 {
    match fault.signal as i32 {
        libc::SIGSEGV | libc::SIGBUS => fault.address,
        _ => thread.context.pc,
    }
}

/// The program dies of a fault, having said all.
pub(crate) fn give_up(thread: &mut Thread, fault: &Fault) -> After {
    let signal = fault.signal as i32;
    end_all(thread);
    set_kernel_action(signal, &Action::default());
    set_mask(!bit(signal));
    // SAFETY: a signal to this thread, which ends the process.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        libc::_exit(128 + signal)
    }
}

/// Offsets in the frame that the kernel makes, and its lengths.
mod frame {
    pub(super) const CONTEXT: u64 = 8;
    pub(super) const REGISTERS: u64 = CONTEXT + 40;
    pub(super) const VECTORS: u64 = REGISTERS + 184;
    pub(super) const MASK: u64 = REGISTERS + 256;
    pub(super) const INFO: u64 = MASK + 8;
    pub(super) const BYTES: u64 = INFO + 128;
    /// The registers by their numbers in the encoding, in the frame's order.
    pub(super) const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];
}

/// Puts a handler's frame on the program's stack and lets it go on there.
fn deliver(thread: &mut Thread, signal: i32, info: &[u8; 128], fault: &Fault) {
    let action = action(signal);
    let rsp = thread.context.registers[4];
    let [stack, flags, len] = thread.signals.stack;
    let is_on_stack = rsp > stack && rsp <= stack.wrapping_add(len);
    let has_stack = flags & libc::SS_DISABLE as u64 == 0 && len > 0;
    let changes = action.flags & libc::SA_ONSTACK as u64 != 0 && has_stack && !is_on_stack;
    let top = if changes { stack + len } else { rsp - 128 };
    let vectors_at = (top - 1024) & !63;
    let at = ((vectors_at - frame::BYTES) & !15) - 8;
    let context = &thread.context;
    let mut words = vec![action.restorer, 7, 0];
    words.extend([stack, if has_stack { u64::from(is_on_stack) } else { flags }, len]);
    words.extend(frame::ORDER.map(|register| context.registers[register]));
    words.extend([context.pc, context.flags, 0x002b_0000_0000_0033, fault.error, fault.trap]);
    words.extend([thread.signals.mask, fault.address, vectors_at]);
    words.extend([0; 8]);
    words.push(thread.signals.mask);
    let vectors = saved_vectors(thread);
    let is_written = guest::write(vectors_at, &vectors)
        && guest::write_words(at, &words)
        && guest::write(at + frame::INFO, info);
    if !is_written {
        let fault = Fault { signal: libc::SIGSEGV as u64, ..Fault::default() };
        give_up(thread, &fault);
    }
    thread.teller.interrupted();
    let registers = &mut thread.context.registers;
    registers[7] = signal as u64;
    registers[6] = at + frame::INFO;
    registers[2] = at + frame::CONTEXT;
    registers[0] = 0;
    registers[4] = at;
    thread.context.pc = action.handler;
    // Neither backwards nor step by step.
    thread.context.flags &= !0x500;
    let itself = if action.flags & libc::SA_NODEFER as u64 == 0 { bit(signal) } else { 0 };
    thread.signals.mask |= action.mask | itself;
    if action.flags & libc::SA_RESETHAND as u64 != 0 {
        let _ = set_action(signal, Some(Action::default()));
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
    bytes.extend(0x4650_5845_u32.to_le_bytes());
    bytes
}

/// The program's `rt_sigreturn`: everything as the frame has it.
pub(crate) fn leave_handler(thread: &mut Thread) -> After {
    // The handler's `ret` has taken the first word.
    let at = thread.context.registers[4].wrapping_sub(8);
    let frame = guest::words::<18>(at + frame::REGISTERS);
    let rest = guest::words::<1>(at + frame::VECTORS);
    let mask = guest::words::<1>(at + frame::MASK);
    let (Some(registers), Some([vectors_at]), Some([mask])) = (frame, rest, mask) else {
        let fault = Fault { signal: libc::SIGSEGV as u64, ..Fault::default() };
        return give_up(thread, &fault);
    };
    for (register, value) in frame::ORDER.iter().zip(registers) {
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
    thread.signals.mask = mask;
    set_kernel_mask(thread);
    After::GoesOn
}
