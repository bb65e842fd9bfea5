//! System calls that change what the process is.

use std::ffi::c_uint;
use std::sync::atomic::Ordering::Release;

use tracer::record::ProcessRecord;

use crate::process::Plugin;
use crate::qemu::PluginId;
use crate::{exec, fork, images, vcpu};

/// The calls of x86-64 that matter here.
mod number {
    pub(super) const MMAP: i64 = 9;
    pub(super) const MPROTECT: i64 = 10;
    pub(super) const MUNMAP: i64 = 11;
    pub(super) const MREMAP: i64 = 25;
    pub(super) const CLONE: i64 = 56;
    pub(super) const FORK: i64 = 57;
    pub(super) const VFORK: i64 = 58;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const EXIT: i64 = 60;
    pub(super) const EXECVEAT: i64 = 322;
    pub(super) const CLONE3: i64 = 435;
}

const AT_FDCWD: u64 = libc::AT_FDCWD as u64;

/// The program is about to enter the kernel.
#[rustfmt::skip]
pub(crate) extern "C" fn on_call(
    _: PluginId, index: c_uint, call: i64,
    a1: u64, a2: u64, a3: u64, a4: u64, a5: u64, a6: u64, _: u64, _: u64,
) {
    let (Some(plugin), Some(vcpu)) = (Plugin::get(), vcpu::get(index)) else { return };
    vcpu.arguments = [a1, a2, a3, a4, a5, a6];
    vcpu.is_in_call.store(true, Release);
    vcpu.assembler.system_call(call as u64);
    vcpu.is_in_call.store(false, Release);
    match call {
        number::CLONE | number::FORK | number::VFORK | number::CLONE3 => fork::expect(index),
        number::EXECVE => exec::follow(plugin, exec::Request { dir: AT_FDCWD, path: a1, arguments: a2, environment: a3, is_by_descriptor: false }),
        number::EXECVEAT => {
            let is_by_descriptor = a5 & libc::AT_EMPTY_PATH as u64 != 0;
            exec::follow(plugin, exec::Request { dir: a1, path: a2, arguments: a3, environment: a4, is_by_descriptor });
        }
        number::EXIT => plugin.process().record(&ProcessRecord::ThreadEnded { thread: vcpu.thread }),
        _ => {}
    }
}

/// The program came back from the kernel.
pub(crate) extern "C" fn on_return(_: PluginId, index: c_uint, call: i64, result: i64) {
    let is_error = (-4095..0).contains(&result);
    if is_error || !matches!(call, number::MMAP..=number::MUNMAP | number::MREMAP) {
        return;
    }
    let (Some(plugin), Some(vcpu)) = (Plugin::get(), vcpu::get(index)) else { return };
    let arguments = vcpu.arguments;
    let [start, len, protection, ..] = arguments;
    let mut process = plugin.process();
    match call {
        number::MMAP => images::on_mapped(&mut process, result as u64, &arguments),
        number::MPROTECT => images::on_protected(&mut process, start, len, protection),
        _ => images::on_unmapped(&mut process, start, len),
    }
}
