//! Where tensors live: the only place that knows the backends by name.

use burn::tensor::Device;

use crate::error::{Error, Result};

/// The devices this build can open: the processor, and the GPU backends it was compiled with.
pub const NAMES: &[&str] = &[
    "cpu",
    #[cfg(feature = "cuda")]
    "cuda",
    #[cfg(feature = "metal")]
    "metal",
    #[cfg(feature = "rocm")]
    "rocm",
    #[cfg(feature = "vulkan")]
    "vulkan",
    #[cfg(feature = "wgpu")]
    "wgpu",
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
    match name {
        "cpu" => Ok(cpu()),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Device::cuda(burn::tensor::DeviceIndex::Default)),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(burn::tensor::DeviceKind::default())),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(burn::tensor::DeviceIndex::Default)),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::default())),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(burn::tensor::DeviceKind::default())),
        _ => Err(Error::Setting(vec![format!(
            "device `{name}` is not in this build, which has: {}; GPU backends are cargo \
             features, as in `cargo build --release --features cuda`",
            NAMES.join(", ")
        )])),
    }
}
