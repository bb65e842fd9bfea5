//! What QEMU calls once.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tracer::inside::{Inside, fork};

use crate::qemu::{
    Info, PluginId, qemu_plugin_register_atexit_cb, qemu_plugin_register_vcpu_init_cb,
    qemu_plugin_register_vcpu_syscall_cb, qemu_plugin_register_vcpu_syscall_ret_cb,
    qemu_plugin_register_vcpu_tb_trans_cb,
};
use crate::{syscall, translate, vcpu};

/// Called by QEMU before it loads the program.
///
/// It always succeeds: refusing would end the program, where running it untraced loses only counts.
///
/// # Safety
///
/// QEMU passes a valid `info`, and `argc` C strings in `argv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (is_system, dir) = unsafe { ((*info).is_system, directory(argc, argv)) };
    if is_system {
        return 0;
    }
    if dir.and_then(Inside::start).is_some() && fork::prepare(vcpu::FORK_HOOKS) {
        // SAFETY: QEMU gave us the id, and the callbacks live as long as the process.
        unsafe {
            qemu_plugin_register_atexit_cb(id, vcpu::on_exit, std::ptr::null_mut());
            qemu_plugin_register_vcpu_init_cb(id, vcpu::on_created);
            qemu_plugin_register_vcpu_tb_trans_cb(id, translate::on_translated);
            qemu_plugin_register_vcpu_syscall_cb(id, syscall::on_call);
            qemu_plugin_register_vcpu_syscall_ret_cb(id, syscall::on_return);
        }
    }
    0
}

/// The value of the one argument, `dir=`.
///
/// # Safety
///
/// `argv` holds `argc` C strings.
unsafe fn directory(argc: c_int, argv: *const *const c_char) -> Option<PathBuf> {
    (0..usize::try_from(argc).ok()?).find_map(|index| {
        // SAFETY: the caller's promise.
        let argument = unsafe { CStr::from_ptr(*argv.add(index)) };
        let value = argument.to_bytes().strip_prefix(b"dir=")?;
        Some(PathBuf::from(OsStr::from_bytes(value)))
    })
}
