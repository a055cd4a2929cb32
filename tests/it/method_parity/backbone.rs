//! Features, running statistics and gradients of the backbones.

use burn::tensor::Tensor;
use pinpoint::{
    collective::Share,
    config::{Backbone, Kernels, ModelConfig, Stem},
    device,
    model::{Branch, Pass, params, resnet::Resnet},
};

use super::{
    BOTH,
    fixture::{Fixture, statistics, values},
    formula::{fill_in, pictures, tensor, uniform},
    strays,
};

/// Of features, relative: sums of up to 4,608 products per layer, up to 53 layers deep.
const FEATURES: f64 = 5e-5;
/// Of running statistics, absolute for values around 1: means over a batch.
const STATISTICS: f32 = 5e-6;
/// Of gradients, relative: twice as deep, and batch norm subtracts what is nearly equal.
const GRADIENTS: f64 = 5e-4;

#[test]
fn a_tiny_network_agrees_at_every_output_stride_and_with_both_stems() {
    for (stem, stem_name) in [(Stem::Deep, "deep"), (Stem::Classic, "classic")] {
        for output_stride in [32, 16, 8] {
            let case = Case::new(Backbone::Tiny, stem, output_stride);
            let name = format!("backbone/tiny-{stem_name}-{output_stride}");
            for kernels in BOTH {
                let network = case.check(&name, kernels);
                let moved: Vec<f32> = statistics(&network).into_values().flatten().collect();
                let name = format!("{name}/statistics");
                case.fixture.assert_close(&name, &moved, strays(kernels).0 * STATISTICS);
            }
        }
    }
}

#[test]
fn resnet18_agrees_with_torchvision() {
    Case::new(Backbone::Resnet18, Stem::Classic, 32).check_large("backbone/resnet18-classic-32");
}

#[test]
fn resnet50_agrees_with_torchvision() {
    Case::new(Backbone::Resnet50, Stem::Classic, 32).check_large("backbone/resnet50-classic-32");
}

#[test]
fn resnet50_agrees_with_torchvision_when_dilated() {
    Case::new(Backbone::Resnet50, Stem::Classic, 8).check_large("backbone/resnet50-classic-8");
}

struct Case {
    fixture: Fixture,
    config: ModelConfig,
    images: Tensor<4>,
}

impl Case {
    fn new(backbone: Backbone, stem: Stem, output_stride: usize) -> Self {
        let (batch, size) = if backbone == Backbone::Tiny { (3, [40, 56]) } else { (4, [64, 64]) };
        Self {
            fixture: Fixture::load(),
            config: ModelConfig { backbone, stem, output_stride, ..ModelConfig::default() },
            images: pictures(0, batch, size, &device::cpu()),
        }
    }

    fn check_large(&self, name: &str) {
        for kernels in BOTH {
            let statistics = statistics(&self.check(name, kernels));
            let tolerance = f64::from(strays(kernels).0) * FEATURES;
            self.fixture
                .assert_rows(&format!("{name}/statistics"), &statistics, tolerance, |_| 0.0);
        }
    }

    /// Compares features in both modes, then gradients; the network is left as training leaves it.
    fn check(&self, name: &str, kernels: Kernels) -> Resnet {
        let device = device::cpu().autodiff();
        let config = ModelConfig { kernels, ..self.config.clone() };
        let network = fill_in(Resnet::new(&config, &device), 0);
        let (sums, slopes) = strays(kernels);
        let images = self.images.clone().autodiff();
        let near = |kind, features: Vec<f32>| {
            self.fixture.assert_row(
                &format!("{name}/{kind}"),
                "features",
                &features,
                f64::from(sums) * FEATURES,
            );
        };
        near(
            "evaluated",
            values(network.forward(images.clone(), Pass::Evaluate(Branch::Whole)).inner()),
        );

        let batch = Share::whole(images.dims()[0]);
        let features = network.forward(images, Pass::Train(Branch::Whole, batch));
        let shape = features.dims();
        assert_eq!(shape.to_vec(), self.fixture.counts(&format!("{name}/shape")));
        near("trained", values(features.clone().inner()));

        let u = uniform("slope");
        let slope = tensor(shape, &device::cpu(), |index| 2.0 * u(index) - 1.0);
        let gradients = (features * slope.autodiff()).sum().backward();
        let gradients = params::gradients(&network, gradients);
        self.fixture.assert_rows(
            &format!("{name}/gradients"),
            &gradients,
            slopes * GRADIENTS,
            |_| 0.0,
        );
        network
    }
}
