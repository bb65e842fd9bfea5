//! One thread of the program: QEMU's virtual CPU with our assembler.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use tracer::assemble::{Assembler, Piece};
use tracer::block::LiveBlock;
use tracer::inside::{Inside, fork, listeners};

use crate::qemu::{PluginId, qemu_plugin_mem_is_store, qemu_plugin_mem_size_shift};

/// Marks an atomic instruction in a memory callback's data; the index is below.
pub(crate) const ATOMIC: usize = 1 << 16;

/// How many vcpus are told apart. Threads beyond run untraced; the kernel has fewer.
const VCPUS: usize = 1 << 16;
static TABLE: [AtomicPtr<Vcpu>; VCPUS] = [const { AtomicPtr::new(null_mut()) }; VCPUS];

/// How many kinds of access are remembered; a power of two.
const KINDS: usize = 64;

/// A thread of the program.
pub(crate) struct Vcpu {
    pub(crate) assembler: Assembler,
    pub(crate) thread: u32,
    /// The arguments of the system call that the thread is in.
    pub(crate) arguments: [u64; 6],
    /// Whether the thread is about to enter the kernel, in our hands.
    pub(crate) is_in_call: AtomicBool,
    kinds: [Kind; KINDS],
}

/// What QEMU's description of an access means, remembered because asking takes two calls.
#[derive(Clone, Copy)]
struct Kind {
    info: u32,
    size: u8,
    is_store: bool,
}

/// QEMU's description never has all bits set.
const UNKNOWN: Kind = Kind { info: u32::MAX, size: 0, is_store: false };

impl Vcpu {
    /// The place where a kind of access is remembered.
    #[inline]
    fn slot(&mut self, info: u32) -> &mut Kind {
        &mut self.kinds[(info >> 4 ^ info >> 14) as usize % KINDS]
    }

    #[inline]
    fn touch(&mut self, kind: Kind, address: u64, data: usize) {
        self.assembler.touch(Piece {
            instruction: data as u16,
            address,
            size: kind.size,
            is_store: kind.is_store,
            is_atomic: data & ATOMIC != 0,
        });
    }

    #[inline(never)]
    fn on_memory(&mut self, info: u32, address: u64, data: usize) {
        if self.assembler.idles_past(data as u16, address) {
            return;
        }
        let kind = *self.slot(info);
        if kind.info == info {
            self.touch(kind, address, data);
        } else {
            self.touch_unknown(info, address, data);
        }
    }

    /// Asks QEMU what an access is.
    #[cold]
    #[inline(never)]
    fn touch_unknown(&mut self, info: u32, address: u64, data: usize) {
        // SAFETY: pure functions of the number.
        let kind = unsafe {
            let size = 1u8.checked_shl(qemu_plugin_mem_size_shift(info)).unwrap_or(0);
            Kind { info, size, is_store: qemu_plugin_mem_is_store(info) }
        };
        *self.slot(info) = kind;
        self.touch(kind, address, data);
    }
}

/// The thread that runs on a vcpu, made on its first block: QEMU announces a vcpu from the thread
/// that creates it.
#[inline]
pub(crate) fn get(index: c_uint) -> Option<&'static mut Vcpu> {
    let vcpu = TABLE.get(index as usize)?.load(Acquire);
    // SAFETY: the pointer is from `Box::into_raw` and stays until the vcpu is created anew, when its
    // thread is gone. Only the thread of a vcpu gets callbacks with its index, one at a time.
    unsafe { vcpu.as_mut() }
}

#[cold]
fn make(index: c_uint) -> Option<&'static mut Vcpu> {
    let inside = Inside::get()?;
    let thread = inside.process().begin_thread();
    let assembler = Assembler::new(listeners::make(inside, thread), Inside::blocks_since);
    let vcpu = Vcpu {
        assembler,
        thread,
        arguments: [0; 6],
        is_in_call: AtomicBool::new(false),
        kinds: [UNKNOWN; KINDS],
    };
    TABLE.get(index as usize)?.store(Box::into_raw(Box::new(vcpu)), Release);
    get(index)
}

/// Forgets the thread that ran on a vcpu.
fn forget(index: usize) {
    let Some(slot) = TABLE.get(index) else { return };
    let vcpu = slot.swap(null_mut(), Relaxed);
    if !vcpu.is_null() {
        // SAFETY: made by `Box::into_raw`, and nobody else has it: its thread ended.
        drop(unsafe { Box::from_raw(vcpu) });
    }
}

/// What happens to the vcpus in the child of a fork.
pub(crate) const FORK_HOOKS: fork::Hooks = fork::Hooks { forget_others, survived };

/// Forgets every thread but one: the others do not exist in the child of a fork.
///
/// They are leaked, since they may have been in the middle of something.
fn forget_others(survivor: Option<c_uint>) {
    for (index, slot) in TABLE.iter().enumerate() {
        if survivor.is_none_or(|survivor| index != survivor as usize)
            && !slot.load(Relaxed).is_null()
        {
            slot.store(null_mut(), Relaxed);
        }
    }
}

/// The thread of a vcpu is the first of a child.
fn survived(survivor: c_uint) {
    if let Some(vcpu) = get(survivor) {
        vcpu.thread = 0;
        vcpu.assembler.forked();
    }
}

/// The process ends. QEMU has stopped every other thread between two blocks before it says so, and
/// calls us for none of them any more. Only a thread that was about to enter the kernel may still be
/// in our hands; it is left alone, having told all that it ran.
pub(crate) extern "C" fn on_exit(_: PluginId, _: *mut c_void) {
    for (index, slot) in TABLE.iter().enumerate() {
        let vcpu = slot.load(Acquire);
        // SAFETY: as in `get`, but shared: only the flag is looked at.
        let is_in_call = unsafe { vcpu.as_ref() }.is_none_or(|vcpu| vcpu.is_in_call.load(Acquire));
        if let (false, Some(vcpu)) = (is_in_call, get(index as c_uint)) {
            vcpu.assembler.ended();
        }
    }
}

/// QEMU made a vcpu, perhaps with the index of one whose thread ended.
pub(crate) extern "C" fn on_created(_: PluginId, index: c_uint) {
    forget(index as usize);
}

/// A block begins.
pub(crate) extern "C" fn on_block(index: c_uint, block: *mut c_void) {
    // SAFETY: registered with a pointer to a block that is never freed.
    let block: &'static LiveBlock = unsafe { &*block.cast::<LiveBlock>() };
    match get(index) {
        Some(vcpu) => vcpu.assembler.begin(block),
        None => first_block(index, block),
    }
}

#[cold]
#[inline(never)]
fn first_block(index: c_uint, block: &'static LiveBlock) {
    if let Some(vcpu) = make(index) {
        vcpu.assembler.begin(block);
    }
}

/// An instruction touched memory. Nothing is saved where nobody looks at that.
pub(crate) extern "C" fn on_memory(index: c_uint, info: u32, address: u64, data: *mut c_void) {
    if let Some(vcpu) = get(index).filter(|vcpu| !vcpu.assembler.is_noting()) {
        vcpu.on_memory(info, address, data as usize);
    }
}
