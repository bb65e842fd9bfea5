//! Which hypervisor this machine runs under, as the processor tells its guests.

/// The name of the hypervisor, on processors that tell.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor_name() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & HYPERVISOR_PRESENT == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let signature: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    Some(name_of(&signature))
}

/// Elsewhere nothing tells; the caller looks at files.
#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor_name() -> Option<String> {
    None
}

/// What the twelve letters stand for.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn name_of(signature: &[u8]) -> String {
    let known: [(&[u8], &str); 7] = [
        (b"KVMKVMKVM\0\0\0", "KVM"),
        (b"Microsoft Hv", "Hyper-V"),
        (b"VMwareVMware", "VMware"),
        (b"XenVMMXenVMM", "Xen"),
        (b"TCGTCGTCGTCG", "QEMU without acceleration"),
        (b"bhyve bhyve ", "bhyve"),
        (b"ACRNACRNACRN", "ACRN"),
    ];
    let name = known.iter().find(|(letters, _)| *letters == signature).map(|(_, name)| *name);
    name.unwrap_or("an unknown hypervisor").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_become_names() {
        assert_eq!(name_of(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(name_of(b"NobodysBoxes"), "an unknown hypervisor");
    }
}
