//! The part of QEMU's plugin interface that we use, declared from its documentation (version 1).

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface that QEMU finds in us.
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "QEMU looks for this name")]
pub(crate) static qemu_plugin_version: c_int = 1;

/// What QEMU says about itself; it lives only while we are installed.
#[repr(C)]
pub(crate) struct Info {
    target_name: *const c_char,
    version_min: c_int,
    version_cur: c_int,
    pub(crate) is_system: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

/// A block while it is translated.
#[repr(C)]
pub(crate) struct Tb {
    _opaque: [u8; 0],
}

/// An instruction while its block is translated.
#[repr(C)]
pub(crate) struct Insn {
    _opaque: [u8; 0],
}

pub(crate) type PluginId = u64;
pub(crate) type ExitCallback = extern "C" fn(PluginId, *mut c_void);
pub(crate) type VcpuCallback = extern "C" fn(PluginId, c_uint);
pub(crate) type TranslateCallback = extern "C" fn(PluginId, *mut Tb);
pub(crate) type BlockCallback = extern "C" fn(c_uint, *mut c_void);
pub(crate) type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
#[rustfmt::skip]
pub(crate) type SyscallCallback =
    extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub(crate) type SyscallReturnCallback = extern "C" fn(PluginId, c_uint, i64, i64);

/// Callbacks do not touch registers.
pub(crate) const NO_REGISTERS: c_int = 0;
/// Reads and writes.
pub(crate) const READ_WRITE: c_int = 3;

unsafe extern "C" {
    pub(crate) fn qemu_plugin_register_atexit_cb(
        id: PluginId,
        callback: ExitCallback,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_init_cb(id: PluginId, callback: VcpuCallback);
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, callback: TranslateCallback);
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        callback: BlockCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        callback: MemoryCallback,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_syscall_cb(id: PluginId, callback: SyscallCallback);
    pub(crate) fn qemu_plugin_register_vcpu_syscall_ret_cb(
        id: PluginId,
        callback: SyscallReturnCallback,
    );
    pub(crate) fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    pub(crate) fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut Insn;
    pub(crate) fn qemu_plugin_insn_data(insn: *const Insn) -> *const c_void;
    pub(crate) fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub(crate) fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    pub(crate) fn qemu_plugin_insn_haddr(insn: *const Insn) -> *mut c_void;
    pub(crate) fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub(crate) fn qemu_plugin_mem_is_store(info: u32) -> bool;
}
