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

use crate::model::layers::values;

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

/// Whether a name is of a running statistic, which moves with the data and not by gradients.
pub fn is_statistic(name: &str) -> bool {
    let field = name.rsplit('.').next().unwrap_or(name);
    matches!(field, "running_mean" | "running_var" | "foreground_mean" | "foreground_var")
}

/// The tensors of a module, in host memory, by name.
pub fn collect(module: &impl Module) -> BTreeMap<String, Array> {
    let mut arrays = BTreeMap::new();
    visit(module, |name, shape, tensor| {
        arrays.insert(name.to_owned(), Array { shape: shape.to_vec(), values: values(tensor) });
    });
    arrays
}

/// The names of a module's tensors, in order of declaration.
pub fn names(module: &impl Module) -> Vec<String> {
    let mut names = Vec::new();
    visit(module, |name, _, _| names.push(name.to_owned()));
    names
}

/// The weights that training moves: how many numbers each tensor has, by name.
pub fn sizes(module: &impl Module) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    visit(module, |name, shape, _| {
        if !is_statistic(name) {
            sizes.insert(name.to_owned(), shape.iter().product());
        }
    });
    sizes
}

/// The number of weights that training moves.
pub fn count(module: &impl Module) -> usize {
    sizes(module).values().sum()
}

/// Replaces each tensor of a module by what `change` makes of it; shapes stay.
pub fn map<M: Module>(module: M, change: impl FnMut(&str, &[usize], Tensor<1>) -> Tensor<1>) -> M {
    module.map(&mut Mapper { path: Path::default(), change })
}

/// The names of the weights of a module's backbone; none if it has none.
pub fn backbone(module: &impl Module) -> BTreeSet<String> {
    let mut collector = BackboneNames::default();
    module.visit(&mut collector);
    collector.names
}

/// Lets the weights of a module's backbone have a gradient, or not; all others stay as they are.
pub fn let_backbone_learn<M: Module>(module: M, learns: bool) -> M {
    module.map(&mut BackboneSwitch { path: Path::default(), learns })
}

/// The gradients of a module's weights, by name and in host memory; weights that `gradients`
/// leaves out are absent.
pub fn gradients(module: &impl Module, gradients: Gradients) -> BTreeMap<String, Vec<f32>> {
    let mut collector =
        GradientCollector { path: Path::default(), gradients, found: BTreeMap::new() };
    module.visit(&mut collector);
    collector.found
}

fn visit(module: &impl Module, see: impl FnMut(&str, &[usize], Tensor<1>)) {
    module.visit(&mut Visitor { path: Path::default(), see });
}

/// The field names from the root to where a walk has come.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn enter(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    fn name(&self) -> String {
        let levels: Vec<&str> =
            self.0.iter().map(String::as_str).filter(|&level| level != BACKBONE).collect();
        levels.join(".")
    }

    /// Whether the walk has come to a weight of the backbone.
    fn is_in_backbone(&self) -> bool {
        self.0.iter().any(|level| level == BACKBONE) && !is_statistic(&self.name())
    }
}

#[derive(Default)]
struct BackboneNames {
    path: Path,
    names: BTreeSet<String>,
}

impl ModuleVisitor for BackboneNames {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
        if self.path.is_in_backbone() {
            self.names.insert(self.path.name());
        }
    }
}

struct BackboneSwitch {
    path: Path,
    learns: bool,
}

impl ModuleMapper for BackboneSwitch {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.0.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.path.is_in_backbone() { param.set_require_grad(self.learns) } else { param }
    }
}

struct Visitor<F> {
    path: Path,
    see: F,
}

impl<F: FnMut(&str, &[usize], Tensor<1>)> ModuleVisitor for Visitor<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        (self.see)(&self.path.name(), &tensor.dims(), flat(tensor));
    }
}

struct GradientCollector {
    path: Path,
    gradients: Gradients,
    found: BTreeMap<String, Vec<f32>>,
}

impl ModuleVisitor for GradientCollector {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.0.pop();
    }

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

impl<F: FnMut(&str, &[usize], Tensor<1>) -> Tensor<1>> ModuleMapper for Mapper<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.0.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.name();
        let learned = param.is_require_grad();
        param.map(|tensor| {
            let (shape, differentiated) = (tensor.dims(), tensor.is_autodiff());
            let changed: Tensor<D> =
                (self.change)(&name, &shape, flat(tensor.inner())).reshape(shape);
            if differentiated { changed.autodiff().set_require_grad(learned) } else { changed }
        })
    }
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    tensor.reshape([-1])
}
