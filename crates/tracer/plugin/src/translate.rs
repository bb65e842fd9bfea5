//! Code that QEMU translates.

use std::ffi::c_void;
use std::ptr::from_ref;

use model::stream::Code;
use tracer::block::{LiveBlock, drop_phantom};
use tracer::ending::is_atomic;
use tracer::inside::{Inside, images, memory};

use crate::qemu::{
    Insn, NO_REGISTERS, PluginId, READ_WRITE, Tb, qemu_plugin_insn_data, qemu_plugin_insn_haddr,
    qemu_plugin_insn_size, qemu_plugin_insn_vaddr, qemu_plugin_register_vcpu_mem_cb,
    qemu_plugin_register_vcpu_tb_exec_cb, qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns,
};
use crate::vcpu;

/// QEMU translated a block.
pub(crate) extern "C" fn on_translated(_: PluginId, tb: *mut Tb) {
    let Some(inside) = Inside::get() else { return };
    // SAFETY: QEMU's block is valid during this call.
    let mut instructions: Vec<Code> = unsafe { instructions(tb) };
    drop_phantom(&mut instructions);
    if instructions.is_empty() {
        return;
    }
    let block = intern(inside, instructions);
    // SAFETY: as above, and blocks are never freed.
    unsafe { watch(tb, block, inside.settings.listener.watches_memory()) };
}

fn intern(inside: &Inside, instructions: Vec<Code>) -> &'static LiveBlock {
    let mut process = inside.process();
    if !process.has_images {
        images::record_first(&mut process, program_path());
    }
    process.intern(instructions)
}

/// # Safety
///
/// `tb` is the block that is being translated.
unsafe fn instructions(tb: *mut Tb) -> Vec<Code> {
    // SAFETY: the caller's promise; indices are below the count.
    unsafe {
        let count = qemu_plugin_tb_n_insns(tb);
        (0..count).map(|index| instruction(qemu_plugin_tb_get_insn(tb, index))).collect()
    }
}

/// # Safety
///
/// `insn` is an instruction of the block that is being translated.
unsafe fn instruction(insn: *const Insn) -> Code {
    let mut bytes = [0; 15];
    // SAFETY: the caller's promise; QEMU has `size` bytes at `data`.
    let (pc, len) = unsafe {
        let len = qemu_plugin_insn_size(insn).min(bytes.len());
        let found = std::slice::from_raw_parts(qemu_plugin_insn_data(insn).cast::<u8>(), len);
        bytes[..len].copy_from_slice(found);
        let pc = qemu_plugin_insn_vaddr(insn);
        learn_base(pc, qemu_plugin_insn_haddr(insn) as u64);
        (pc, len)
    };
    Code { pc, bytes, len: len as u8 }
}

/// Learns how far the program's addresses are from QEMU's own, where QEMU knows both.
fn learn_base(pc: u64, host: u64) {
    if host != 0 {
        memory::set_base(host.wrapping_sub(pc));
    }
}

/// Asks to be called when the block begins and when its instructions touch memory.
///
/// # Safety
///
/// `tb` is the block that is being translated.
unsafe fn watch(tb: *mut Tb, block: &'static LiveBlock, watches_memory: bool) {
    let data = from_ref(block).cast_mut().cast::<c_void>();
    // SAFETY: the caller's promise; the block outlives the callback.
    unsafe { qemu_plugin_register_vcpu_tb_exec_cb(tb, vcpu::on_block, NO_REGISTERS, data) };
    if !watches_memory {
        return;
    }
    for (index, code) in block.code.instructions.iter().enumerate() {
        // Being asked about it costs QEMU time, even where it has nothing to tell.
        if block.most_bytes(index as u16) == 0 {
            continue;
        }
        let data = index | if is_atomic(code) { vcpu::ATOMIC } else { 0 };
        // SAFETY: the caller's promise; a phantom at the end is left out.
        unsafe {
            let insn = qemu_plugin_tb_get_insn(tb, index);
            let (flags, data) = (NO_REGISTERS, std::ptr::without_provenance_mut(data));
            qemu_plugin_register_vcpu_mem_cb(insn, vcpu::on_memory, flags, READ_WRITE, data);
        }
    }
}

/// The file that runs, where QEMU says it.
fn program_path() -> Option<String> {
    let name = c"qemu_plugin_path_to_binary";
    // SAFETY: looks up a symbol by a C string; without it we do without.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    type PathToBinary = extern "C" fn() -> *const std::ffi::c_char;
    // SAFETY: QEMU's documentation gives the symbol this type.
    let path_to_binary: PathToBinary = unsafe { std::mem::transmute(symbol) };
    let path = path_to_binary();
    // SAFETY: a C string that is ours, or null.
    (!path.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(path) }.to_string_lossy().into())
}
