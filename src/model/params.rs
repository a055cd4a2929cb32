//! A module's tensors by name.
//!
//! Names are the field path, without the `backbone` level: `layer1.0.conv1.weight`,
//! as torchvision's. Tensors are handed over flat, with their shape beside them, so
//! that what walks over a model need not care about ranks.

use std::collections::{BTreeMap, BTreeSet};

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Gradients, Tensor},
};

use super::{
    layers::values,
    role::{Part, Role, part, role},
};

/// The level of a field path that names leave out.
const BACKBONE: &str = "backbone";

/// A tensor in host memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// Row-major.
    pub values: Vec<f32>,
}

/// Which tensor of a module is meant, and what it is there for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The field path, without the `backbone` level.
    pub name: String,
    /// What it is to its layer.
    pub role: Role,
    /// What part of the network it is in, if that is said.
    pub part: Option<Part>,
    /// Length of each axis.
    pub shape: Vec<usize>,
}

/// The tensors of a module, in host memory, by name.
pub fn collect(module: &impl Module) -> BTreeMap<String, Array> {
    let mut arrays = BTreeMap::new();
    visit(module, |Description { name, shape, .. }, tensor| {
        arrays.insert(name, Array { shape, values: values(tensor) });
    });
    arrays
}

/// What each tensor of a module is, in order of declaration.
pub fn describe(module: &impl Module) -> Vec<Description> {
    let mut found = Vec::new();
    visit(module, |description, _| found.push(description));
    found
}

/// The weights that training moves: how many numbers each tensor has, by name.
pub fn sizes(module: &impl Module) -> BTreeMap<String, usize> {
    let learned = describe(module).into_iter().filter(|tensor| !tensor.role.is_statistic());
    learned.map(|tensor| (tensor.name, tensor.shape.iter().product())).collect()
}

/// Replaces each tensor of a module by what `change` makes of it; shapes stay.
pub fn map<M: Module>(
    module: M,
    mut change: impl FnMut(&str, &[usize], Tensor<1>) -> Tensor<1>,
) -> M {
    map_described(module, |tensor, values| change(&tensor.name, &tensor.shape, values))
}

/// The same, told what each tensor is.
pub fn map_described<M: Module>(
    module: M,
    change: impl FnMut(&Description, Tensor<1>) -> Tensor<1>,
) -> M {
    module.map(&mut Mapper { path: Path::default(), change })
}

/// The names of the weights of a module's backbone; none if it has none.
pub fn backbone(module: &impl Module) -> BTreeSet<String> {
    let tensors = describe(module).into_iter().filter(Description::is_learned_by_backbone);
    tensors.map(|tensor| tensor.name).collect()
}

/// Lets the weights of a module's backbone have a gradient, or not; all others stay as they are.
pub fn let_backbone_learn<M: Module>(module: M, learns: bool) -> M {
    module.map(&mut BackboneSwitch { path: Path::default(), learns })
}

/// The gradients of a module's weights, by name and in host memory; weights that `gradients`
/// leaves out are absent.
pub fn gradients(module: &impl Module, gradients: Gradients) -> BTreeMap<String, Vec<f32>> {
    let (path, found) = (Path::default(), BTreeMap::new());
    let mut collector = GradientCollector { path, gradients, found };
    module.visit(&mut collector);
    collector.found
}

fn visit(module: &impl Module, see: impl FnMut(Description, Tensor<1>)) {
    module.visit(&mut Visitor { path: Path::default(), see });
}

impl Description {
    fn is_learned_by_backbone(&self) -> bool {
        self.part == Some(Part::Backbone) && !self.role.is_statistic()
    }
}

/// The fields from the root to where a walk has come, each with the type whose field it is.
#[derive(Default)]
struct Path(Vec<(String, String)>);

impl Path {
    fn enter(&mut self, field: &str, container: &str) {
        let layer = container.strip_prefix("Struct:").unwrap_or_default();
        self.0.push((field.to_owned(), layer.to_owned()));
    }

    fn name(&self) -> String {
        let levels = self.0.iter().map(|(field, _)| field.as_str());
        levels.filter(|&level| level != BACKBONE).collect::<Vec<_>>().join(".")
    }

    /// The tensor that the walk has come to.
    fn describe(&self, shape: &[usize]) -> Description {
        let name = self.name();
        let stated = self.0.last().and_then(|(field, layer)| role(layer, field));
        let role = stated.unwrap_or_else(|| panic!("`role.rs` states no role for `{name}`"));
        let part = self.0.iter().find_map(|(_, layer)| part(layer));
        Description { name, role, part, shape: shape.to_vec() }
    }
}

/// What every walk does between tensors: its path goes along.
macro_rules! follow_path {
    () => {
        fn enter_module(&mut self, field: &str, container: &str) {
            self.path.enter(field, container);
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.0.pop();
        }
    };
}

struct BackboneSwitch {
    path: Path,
    learns: bool,
}

impl ModuleMapper for BackboneSwitch {
    follow_path!();

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let tensor = self.path.describe(&param.dims());
        if tensor.is_learned_by_backbone() { param.set_require_grad(self.learns) } else { param }
    }
}

struct Visitor<F> {
    path: Path,
    see: F,
}

impl<F: FnMut(Description, Tensor<1>)> ModuleVisitor for Visitor<F> {
    follow_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        (self.see)(self.path.describe(&tensor.dims()), flat(tensor));
    }
}

struct GradientCollector {
    path: Path,
    gradients: Gradients,
    found: BTreeMap<String, Vec<f32>>,
}

impl ModuleVisitor for GradientCollector {
    follow_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad_remove(&mut self.gradients) {
            self.found.insert(self.path.name(), values(gradient));
        }
    }
}

struct Mapper<F> {
    path: Path,
    change: F,
}

impl<F: FnMut(&Description, Tensor<1>) -> Tensor<1>> ModuleMapper for Mapper<F> {
    follow_path!();

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let learned = param.is_require_grad();
        param.map(|tensor| {
            let (shape, differentiated) = (tensor.dims(), tensor.is_autodiff());
            let description = self.path.describe(&shape);
            let changed: Tensor<D> =
                (self.change)(&description, flat(tensor.inner())).reshape(shape);
            if differentiated { changed.autodiff().set_require_grad(learned) } else { changed }
        })
    }
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    tensor.reshape([-1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Config, Statistics},
        device,
        model::{Model, attention::AttentionNetwork, unet::Unet},
    };

    fn described(module: &impl Module) -> Vec<(String, Role, Option<Part>)> {
        let tensors = describe(module).into_iter();
        tensors.map(|tensor| (tensor.name, tensor.role, tensor.part)).collect()
    }

    #[test]
    fn every_tensor_of_every_network_has_a_role() {
        let mut config = Config::default();
        config.model.statistics = Statistics::Separate;
        config.deep_mil.gated = true;
        let device = device::cpu();
        let model = described(&Model::blank(&config, 2, &device));
        let has = |name: &str, role, part| assert!(model.contains(&(name.to_owned(), role, part)));
        let (backbone, head) = (Some(Part::Backbone), Some(Part::Head));
        has("conv1.weight", Role::Weight, backbone);
        has("layer1.0.bn1.weight", Role::NormScale, backbone);
        has("layer4.1.bn2.bias", Role::NormShift, backbone);
        has("bn1.running_var", Role::Statistic, backbone);
        has("bn1.foreground_mean", Role::ForegroundStatistic("running_mean"), backbone);
        has("localizer.weight", Role::Weight, head);
        has("classifier.bias", Role::Bias, head);
        assert!(model.iter().all(|(_, _, part)| part.is_some()));

        let attention = described(&AttentionNetwork::new(&config, 2, &device));
        let mut heads = attention.iter().filter(|(_, _, part)| *part == head);
        assert!(heads.all(|(name, _, _)| name.starts_with("localizer.")));
        let unet = described(&Unet::new(&config, &device));
        assert!(unet.iter().all(|(_, _, part)| *part != backbone));
    }
}
