//! Code that QEMU translates.

use std::ffi::c_void;
use std::ptr::from_ref;

use model::stream::Code;
use tracer::block::{LiveBlock, drop_phantom};
use tracer::ending::is_atomic;
use tracer::record::ProcessRecord;

use crate::process::Plugin;
use crate::qemu::{
    Insn, NO_REGISTERS, PluginId, READ_WRITE, Tb, qemu_plugin_insn_data, qemu_plugin_insn_haddr,
    qemu_plugin_insn_size, qemu_plugin_insn_vaddr, qemu_plugin_register_vcpu_mem_cb,
    qemu_plugin_register_vcpu_tb_exec_cb, qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns,
};
use crate::{guest, images, vcpu};

/// QEMU translated a block.
pub(crate) extern "C" fn on_translated(_: PluginId, tb: *mut Tb) {
    let Some(plugin) = Plugin::get() else { return };
    // SAFETY: QEMU's block is valid during this call.
    let mut instructions: Vec<Code> = unsafe { instructions(tb) };
    drop_phantom(&mut instructions);
    if instructions.is_empty() {
        return;
    }
    let block = intern(plugin, instructions);
    // SAFETY: as above, and blocks are never freed.
    unsafe { watch(tb, block, plugin.settings.listener.watches_memory()) };
}

fn intern(plugin: &Plugin, instructions: Vec<Code>) -> &'static LiveBlock {
    let mut process = plugin.process();
    if !process.has_images {
        process.has_images = true;
        images::record_first(&mut process);
    }
    let (block, is_new) = process.blocks.intern(instructions);
    if is_new {
        process.record(&ProcessRecord::Block(block.code.clone()));
    }
    block
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
        guest::learn_base(pc, qemu_plugin_insn_haddr(insn) as u64);
        (pc, len)
    };
    Code { pc, bytes, len: len as u8 }
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
