//! The devices that tensors can be on. Beside `model::fused`, nothing else names a backend.

use burn::tensor::Device;

use crate::error::{Error, Result};

type Open = fn() -> Device;

/// The devices this build can open, by name: the processor, and the GPU backends it was compiled
/// with.
const DEVICES: &[(&str, Open)] = &[
    ("cpu", cpu),
    #[cfg(feature = "cuda")]
    ("cuda", || Device::cuda(burn::tensor::DeviceIndex::Default)),
    #[cfg(feature = "metal")]
    ("metal", || Device::metal(burn::tensor::DeviceKind::default())),
    #[cfg(feature = "rocm")]
    ("rocm", || Device::rocm(burn::tensor::DeviceIndex::Default)),
    #[cfg(feature = "vulkan")]
    ("vulkan", || Device::vulkan(burn::tensor::DeviceKind::default())),
    #[cfg(feature = "wgpu")]
    ("wgpu", || Device::wgpu(burn::tensor::DeviceKind::default())),
];

/// The processor, which is the reference device.
pub fn cpu() -> Device {
    Device::flex()
}

/// Whether a device is the processor, whose memory is the machine's.
pub fn is_cpu(device: &Device) -> bool {
    device.clone().inner() == cpu()
}

/// Opens the device a user asked for.
pub fn open(name: &str) -> Result<Device> {
    if let Some((_, open)) = DEVICES.iter().find(|(known, _)| *known == name) {
        return Ok(open());
    }
    let known: Vec<&str> = DEVICES.iter().map(|(known, _)| *known).collect();
    Err(Error::Setting(vec![format!(
        "device `{name}` is not in this build, which has: {}; GPU backends are cargo features, as \
         in `cargo build --release --features cuda`",
        known.join(", ")
    )]))
}
