//! System calls of the program, as QEMU reports them.

use std::ffi::c_uint;
use std::sync::atomic::Ordering::Release;

use tracer::inside::Inside;
use tracer::inside::calls::{self, Caller};

use crate::qemu::PluginId;
use crate::vcpu;

/// The program is about to enter the kernel.
#[rustfmt::skip]
pub(crate) extern "C" fn on_call(
    _: PluginId, index: c_uint, call: i64,
    a1: u64, a2: u64, a3: u64, a4: u64, a5: u64, a6: u64, _: u64, _: u64,
) {
    let (Some(inside), Some(vcpu)) = (Inside::get(), vcpu::get(index)) else { return };
    vcpu.arguments = [a1, a2, a3, a4, a5, a6];
    vcpu.is_in_call.store(true, Release);
    vcpu.assembler.system_call(call as u64);
    vcpu.is_in_call.store(false, Release);
    calls::on_call(inside, Caller { index, thread: vcpu.thread }, call, &vcpu.arguments);
}

/// The program came back from the kernel.
pub(crate) extern "C" fn on_return(_: PluginId, index: c_uint, call: i64, result: i64) {
    if let (Some(inside), Some(vcpu)) = (Inside::get(), vcpu::get(index)) {
        calls::on_return(inside, call, &vcpu.arguments, result);
    }
}
