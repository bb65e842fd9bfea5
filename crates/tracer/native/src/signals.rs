//! The program's signals.
//!
//! The kernel tells us; we tell the program when it is between two blocks, with a frame on its stack
//! such as the kernel makes ([`crate::frame`]). A fault is told at the instruction that faulted. A
//! signal that waits to be told is blocked meanwhile, so that none is lost; one that the program
//! blocks by the time it could be told goes back to the kernel, which keeps it for whoever asks.

use std::sync::{Mutex, PoisonError};

use crate::calls::After;
use crate::context::{Context, Fault, leave};
use crate::frame::{Told, deliver};
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
/// What is done about each signal.
pub(crate) type Actions = [Action; SIGNALS];
static ACTIONS: Mutex<Actions> =
    Mutex::new([Action { handler: 0, flags: 0, restorer: 0, mask: 0 }; SIGNALS]);

/// Signals that instructions raise. They are always ours.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// One thread's signals.
pub(crate) struct Signals {
    /// What the program blocks.
    pub(crate) mask: u64,
    /// What it blocks instead while it waits in a call that says so, once a signal has ended that.
    pub(crate) waits_with: Option<u64>,
    /// What a child is to do about signals that has its parent's memory for a while, but not its
    /// parent's actions.
    pub(crate) own_actions: Option<Box<Actions>>,
    /// The stack that it wants handlers to run on: start, flags, length.
    pub(crate) stack: [u64; 3],
    own_stack: Box<[u8]>,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals {
            mask: 0,
            waits_with: None,
            own_actions: None,
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

pub(crate) fn bit(signal: i32) -> u64 {
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
pub(crate) fn set_kernel_mask(thread: &mut Thread) {
    if waiting() & !thread.signals.mask != 0 {
        thread.context.has_signal = 1;
    }
    let mask = (thread.signals.mask | waiting()) & !fault_bits();
    set_mask(mask);
}

/// Gives a signal that waits back to the kernel, where it is blocked: as one for the thread or for the
/// whole process, as it came.
fn give_back(signal: i32) {
    let info = take(signal);
    let code = i32::from_le_bytes([info[8], info[9], info[10], info[11]]);
    let is_for_all =
        matches!(code, libc::SI_USER | libc::SI_QUEUE | libc::SI_KERNEL) || signal == libc::SIGCHLD;
    // SAFETY: the kernel reads what it once wrote, and lets a process send itself anything.
    unsafe {
        let pid = libc::getpid();
        match is_for_all {
            true => libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, info.as_ptr()),
            false => {
                let tid = libc::gettid();
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info.as_ptr())
            }
        };
    }
}

/// The program asks for one of these signals: one that is a fault by its number, was sent, and is blocked
/// waits here, and the kernel knows nothing of it. `None` if there is none.
pub(crate) fn take_fault(wanted: u64, told: u64) -> Option<i64> {
    let [wanted] = guest::words::<1>(wanted)?;
    let here = waiting() & wanted;
    let signal = FAULTS.into_iter().find(|signal| here & bit(*signal) != 0)?;
    let info = take(signal);
    let is_told = told == 0 || guest::write(told, &info);
    Some(if is_told { i64::from(signal) } else { -i64::from(libc::EFAULT) })
}

/// The kernel's answer to which signals wait, with the faults that wait here.
pub(crate) fn add_faults(result: i64, told: u64, len: u64) -> Option<i64> {
    let here = waiting() & fault_bits();
    if result == 0 && here != 0 && len == 8 {
        let [there] = guest::words::<1>(told)?;
        guest::write_words(told, &[there | here]);
    }
    Some(result)
}

/// The thread ends: no signal may reach it any more, and others get what it has not told.
pub(crate) fn leave() {
    block_all();
    let waiting = waiting();
    (1..SIGNALS as i32).filter(|signal| waiting & bit(*signal) != 0).for_each(give_back);
}

/// What waits to be told, put aside for as long as somebody else uses the thread.
pub(crate) fn exchange_waiting(signals: u64) -> u64 {
    // SAFETY: this thread's own, with all signals blocked.
    WAITING.with(|waiting| unsafe { std::mem::replace(&mut (*waiting.get()).signals, signals) })
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
pub(crate) fn set_action(
    thread: &mut Thread,
    signal: i32,
    new: Option<Action>,
) -> Result<Action, i64> {
    if !(1..SIGNALS as i32).contains(&signal) {
        return Err(-i64::from(libc::EINVAL));
    }
    if new.is_some() && matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
        return Err(-i64::from(libc::EINVAL));
    }
    let mut shared = ACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let actions = thread.signals.own_actions.as_deref_mut().unwrap_or(&mut shared);
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

/// What all threads of the process do about signals now.
pub(crate) fn actions() -> Box<Actions> {
    Box::new(*ACTIONS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn action(thread: &Thread, signal: i32) -> Action {
    match &thread.signals.own_actions {
        Some(own) => own[signal as usize],
        None => ACTIONS.lock().unwrap_or_else(PoisonError::into_inner)[signal as usize],
    }
}

/// Whether an interrupted call is made again when the signals that wait were told.
pub(crate) fn restarts_calls(thread: &Thread) -> bool {
    let waiting = waiting();
    let mut all = (1..SIGNALS as i32).filter(|signal| waiting & bit(*signal) != 0);
    all.all(|signal| action(thread, signal).flags & libc::SA_RESTART as u64 != 0)
}

/// Tells the program of the signals that wait, but for those that it blocks.
pub(crate) fn deliver_pending(thread: &mut Thread) {
    block_all();
    thread.context.has_signal = 0;
    let mut before = None;
    if let Some(mask) = thread.signals.waits_with.take() {
        before = Some(std::mem::replace(&mut thread.signals.mask, mask));
    }
    let all = waiting();
    for signal in (1..SIGNALS as i32).filter(|signal| all & bit(*signal) != 0) {
        let is_fault = FAULTS.contains(&signal);
        match action(thread, signal).handler {
            // One that the kernel does not block for us waits here.
            _ if thread.signals.mask & bit(signal) != 0 && is_fault => {}
            _ if thread.signals.mask & bit(signal) != 0 => give_back(signal),
            0 if is_fault => {
                give_up(thread, &Fault { signal: signal as u64, ..Fault::default() });
            }
            // The kernel does what is usual.
            0 => give_back(signal),
            1 => drop(take(signal)),
            _ => {
                let info = take(signal);
                let mask = before.take().unwrap_or(thread.signals.mask);
                deliver(thread, signal, &Told { info: &info, fault: &Fault::default(), mask });
            }
        }
    }
    if let Some(mask) = before {
        thread.signals.mask = mask;
    }
    set_kernel_mask(thread);
}

/// Tells the program of a fault, or lets it die of it.
pub(crate) fn deliver_fault(thread: &mut Thread, fault: &Fault) -> After {
    let signal = fault.signal as i32;
    let is_blocked = thread.signals.mask & bit(signal) != 0;
    if action(thread, signal).handler <= 1 || is_blocked {
        return give_up(thread, fault);
    }
    let mut info = [0; 128];
    info[0..4].copy_from_slice(&signal.to_le_bytes());
    info[8..12].copy_from_slice(&(fault.code as i32).to_le_bytes());
    info[16..24].copy_from_slice(&told_address(thread, fault).to_le_bytes());
    let mask = thread.signals.mask;
    deliver(thread, signal, &Told { info: &info, fault, mask });
    set_kernel_mask(thread);
    After::GoesOn
}

/// What a fault's address is for the program: that of the instruction where the instruction itself is
/// at fault.
fn told_address(thread: &Thread, fault: &Fault) -> u64 {
    match fault.signal as i32 {
        libc::SIGSEGV | libc::SIGBUS => fault.address,
        // A breakpoint says nothing.
        libc::SIGTRAP if fault.code == i64::from(libc::SI_KERNEL) => 0,
        _ => thread.context.pc,
    }
}

/// The program dies of a fault, having said all.
pub(crate) fn give_up(thread: &mut Thread, fault: &Fault) -> After {
    let signal = fault.signal as i32;
    if !thread.is_borrowed() {
        end_all(thread);
    }
    set_kernel_action(signal, &Action::default());
    set_mask(!bit(signal));
    // SAFETY: a signal to this thread, which ends the process.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        libc::_exit(128 + signal)
    }
}
