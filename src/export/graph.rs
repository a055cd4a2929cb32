//! An ONNX graph in the making: operations on named values, written as expressions.

use std::{cell::RefCell, fmt, ops};

use crate::{model::params::Array, protobuf::Message};

/// The version of the operators, and of the file format that it came with.
const OPERATORS: i64 = 18;
const FORMAT: i64 = 8;

/// What a tensor holds, as ONNX numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Float = 1,
    Int = 7,
    Bool = 9,
    Double = 11,
}

/// An attribute of an operation.
#[derive(Debug, Clone)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Text(&'static str),
    Graph(Message),
}

use Attribute::{Float, Int, Ints, Text};

/// Attributes by name.
pub(super) type Attributes<'a> = &'a [(&'a str, Attribute)];

/// A side of a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    /// So long.
    Fixed(usize),
    /// As long as whoever runs the graph wants it; sides of one name are equal.
    Free(&'static str),
}

/// Operations, constants, and what goes in and comes out.
#[derive(Debug, Default)]
pub(super) struct Graph {
    content: RefCell<Content>,
    /// What names of values begin with, so that those of an inner graph are its own.
    prefix: &'static str,
}

#[derive(Debug, Default)]
struct Content {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    /// The name of each value.
    names: Vec<String>,
}

/// What an operation gives, or the graph is given.
#[derive(Clone, Copy)]
pub(super) struct Value<'g> {
    graph: &'g Graph,
    /// Place of its name; none for an input that an operation is to do without.
    name: Option<usize>,
    kind: Kind,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.kind)
    }
}

/// A number that constants are made of.
pub(super) trait Element: Copy {
    const KIND: Kind;

    fn write(self, bytes: &mut Vec<u8>);
}

impl Graph {
    /// A graph within another one, whose values it may use.
    pub(super) fn inner(prefix: &'static str) -> Self {
        Self { prefix, ..Self::default() }
    }

    fn value(&self, name: String, kind: Kind) -> Value<'_> {
        let names = &mut self.content.borrow_mut().names;
        names.push(name);
        Value { graph: self, name: Some(names.len() - 1), kind }
    }

    fn fresh(&self, kind: Kind) -> Value<'_> {
        let count = self.content.borrow().names.len();
        self.value(format!("{}v{count}", self.prefix), kind)
    }

    /// A value of the graph around this one.
    pub(super) fn outer(&self, value: Value<'_>) -> Value<'_> {
        self.value(value.name(), value.kind)
    }

    /// Adds an operation with one result.
    pub(super) fn op<'g>(
        &'g self,
        kind: &str,
        inputs: &[Value<'g>],
        attributes: Attributes<'_>,
    ) -> Value<'g> {
        let [output] = self.ops(kind, inputs, attributes);
        output
    }

    /// Adds an operation with several results.
    pub(super) fn ops<'g, const N: usize>(
        &'g self,
        kind: &str,
        inputs: &[Value<'g>],
        attributes: Attributes<'_>,
    ) -> [Value<'g>; N] {
        let result = match kind {
            "Shape" | "ArgMax" | "ArgMin" => Kind::Int,
            "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "And" => Kind::Bool,
            "Where" => inputs[1].kind,
            "Loop" => inputs[2].kind,
            _ => inputs[0].kind,
        };
        let outputs = std::array::from_fn(|_| self.fresh(result));
        let node = inputs.iter().fold(Message::new(), |node, input| node.text(1, &input.name()));
        let node = outputs.iter().fold(node, |node, output| node.text(2, &output.name()));
        let attributes = attributes.iter().map(|(name, value)| value.encode(name));
        let node = attributes.fold(node.text(4, kind), |node, value| node.message(5, &value));
        self.content.borrow_mut().nodes.push(node);
        outputs
    }

    /// A weight under its own name; one that is there already is shared.
    pub(super) fn weight(&self, name: &str, array: &Array) -> Value<'_> {
        let is_new = !self.content.borrow().names.iter().any(|known| known == name);
        let weight = self.value(name.to_owned(), Kind::Float);
        if is_new {
            weight.hold(&array.shape, &array.values);
        }
        weight
    }

    /// A constant.
    pub(super) fn constant<T: Element>(&self, shape: &[usize], values: &[T]) -> Value<'_> {
        let constant = self.fresh(T::KIND);
        constant.hold(shape, values);
        constant
    }

    /// A constant line of integers.
    pub(super) fn line(&self, values: &[i64]) -> Value<'_> {
        self.constant(&[values.len()], values)
    }

    /// Declares what is given.
    pub(super) fn input(&self, name: &str, kind: Kind, shape: &[Side]) -> Value<'_> {
        self.content.borrow_mut().inputs.push(declared(name, kind, shape));
        self.value(name.to_owned(), kind)
    }

    /// Declares what comes out, under a name of its own.
    pub(super) fn output(&self, name: &str, value: Value<'_>, shape: &[Side]) {
        let node = Message::new().text(1, &value.name()).text(2, name).text(4, "Identity");
        let mut content = self.content.borrow_mut();
        content.nodes.push(node);
        content.outputs.push(declared(name, value.kind, shape));
    }

    /// The graph, to be part of a model or of an operation.
    pub(super) fn encode(self, name: &str) -> Message {
        let Content { nodes, constants, inputs, outputs, .. } = self.content.into_inner();
        Message::new()
            .messages(1, &nodes)
            .text(2, name)
            .messages(5, &constants)
            .messages(11, &inputs)
            .messages(12, &outputs)
    }

    /// A model of this graph, with notes beside it.
    pub(super) fn model(self, notes: &[(&str, String)]) -> Vec<u8> {
        let note = |(key, value): &(&str, String)| Message::new().text(1, key).text(2, value);
        let notes: Vec<Message> = notes.iter().map(note).collect();
        Message::new()
            .int(1, FORMAT)
            .text(2, "pinpoint")
            .text(3, env!("CARGO_PKG_VERSION"))
            .message(7, &self.encode("pinpoint"))
            .message(8, &Message::new().text(1, "").int(2, OPERATORS))
            .messages(14, &notes)
            .into_bytes()
    }
}

/// What stands on the right of an operation: a value, or a number of the type on its left.
pub(super) trait Operand<'g> {
    fn beside(self, left: Value<'g>) -> Value<'g>;
}

impl<'g> Operand<'g> for Value<'g> {
    fn beside(self, _: Self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($number:ty => $kind:ident),*) => {
        $(impl Element for $number {
            const KIND: Kind = Kind::$kind;

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        }

        impl<'g> Operand<'g> for $number {
            fn beside(self, left: Value<'g>) -> Value<'g> {
                match left.kind {
                    Kind::Float => left.graph.constant(&[], &[self as f32]),
                    Kind::Double => left.graph.constant(&[], &[self as f64]),
                    Kind::Int | Kind::Bool => left.graph.constant(&[], &[self as i64]),
                }
            }
        })*
    };
}

numbers! { f32 => Float, f64 => Double, i64 => Int }

macro_rules! operators {
    ($($trait:ident $method:ident $kind:literal),*) => {
        $(impl<'g, T: Operand<'g>> ops::$trait<T> for Value<'g> {
            type Output = Self;

            fn $method(self, right: T) -> Self {
                self.op($kind, &[right.beside(self)], &[])
            }
        })*
    };
}

operators! { Add add "Add", Sub sub "Sub", Mul mul "Mul", Div div "Div" }

impl<'g> ops::Sub<Value<'g>> for f64 {
    type Output = Value<'g>;

    fn sub(self, right: Value<'g>) -> Value<'g> {
        self.beside(right) - right
    }
}

/// Operations on one value, and on two.
macro_rules! named {
    ($($one:ident $kind:literal),*; $($two:ident $kind2:literal),*) => {
        impl<'g> Value<'g> {
            $(pub(super) fn $one(self) -> Self {
                self.op($kind, &[], &[])
            })*

            $(pub(super) fn $two(self, right: impl Operand<'g>) -> Self {
                self.op($kind2, &[right.beside(self)], &[])
            })*
        }
    };
}

named! {
    exp "Exp", floor "Floor", log "Log", relu "Relu", round "Round", shape "Shape",
    sigmoid "Sigmoid", sqrt "Sqrt", transpose "Transpose";
    and "And", greater "Greater", less "Less", matmul "MatMul", max "Max", min "Min",
    modulo "Mod", not_below "GreaterOrEqual"
}

impl<'g> Value<'g> {
    fn name(self) -> String {
        let name = self.name.map(|name| self.graph.content.borrow().names[name].clone());
        name.unwrap_or_default()
    }

    /// Makes it a constant.
    fn hold<T: Element>(self, shape: &[usize], values: &[T]) {
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.write(&mut bytes));
        let sides = shape.iter().fold(Message::new(), |tensor, &side| tensor.int(1, side as i64));
        let tensor = sides.int(2, T::KIND as i64).text(8, &self.name()).bytes(9, &bytes);
        self.graph.content.borrow_mut().constants.push(tensor);
    }

    /// An operation on this value and others.
    pub(super) fn op(self, kind: &str, others: &[Self], attributes: Attributes<'_>) -> Self {
        self.graph.op(kind, &[&[self], others].concat(), attributes)
    }

    pub(super) fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Zeros of the same shape.
    pub(super) fn zeros(self) -> Self {
        self.op("Sub", &[self], &[])
    }

    pub(super) fn cast(self, kind: Kind) -> Self {
        Self { kind, ..self.op("Cast", &[], &[("to", Int(kind as i64))]) }
    }

    pub(super) fn reshape(self, shape: &[i64]) -> Self {
        self.op("Reshape", &[self.graph.line(shape)], &[])
    }

    /// A reduction, such as `ReduceSum`, along axes that stay with length 1.
    pub(super) fn reduce(self, kind: &str, axes: &[i64]) -> Self {
        self.op(kind, &[self.graph.line(axes)], &[("keepdims", Int(1))])
    }

    pub(super) fn softmax(self) -> Self {
        self.op("Softmax", &[], &[("axis", Int(1))])
    }

    /// This value where a condition holds, another where it does not.
    pub(super) fn kept(self, condition: Self, otherwise: impl Operand<'g>) -> Self {
        condition.op("Where", &[self, otherwise.beside(self)], &[])
    }

    pub(super) fn clip(self, low: impl Operand<'g>, high: impl Operand<'g>) -> Self {
        self.op("Clip", &[low.beside(self), high.beside(self)], &[])
    }

    /// Part of an axis, from a place on and before another.
    pub(super) fn slice(self, from: Self, to: Self, axes: &[i64]) -> Self {
        self.op("Slice", &[from, to, self.graph.line(axes)], &[])
    }

    /// Height and width of `[1, C, H, W]`, as a line of two integers.
    pub(super) fn size(self) -> Self {
        self.sides(2, 4)
    }

    /// Lengths of some axes, as a line of integers.
    pub(super) fn sides(self, start: i64, end: i64) -> Self {
        self.op("Shape", &[], &[("start", Int(start)), ("end", Int(end))])
    }

    /// The number of cells of `[1, C, H, W]`, as a line of one integer.
    pub(super) fn cells(self) -> Self {
        self.size().reduce("ReduceProd", &[0])
    }

    /// `[1, C, h, w]` → `[1, C, n]`
    pub(super) fn flat(self) -> Self {
        self.reshape(&[0, 0, -1])
    }

    /// The highest (or lowest) `k` of the last axis; `k` is a line of one integer.
    pub(super) fn top(self, k: Self, highest: bool) -> Self {
        let highest = ("largest", Int(i64::from(highest)));
        let [values, _] = self.graph.ops("TopK", &[self, k], &[("axis", Int(-1)), highest]);
        values
    }

    /// A convolution by `[out, in, k, k]` weights, padded so that stride alone decides the size.
    pub(super) fn conv(
        self,
        weight: Self,
        bias: Option<Self>,
        kernel: usize,
        [stride, dilation]: [usize; 2],
    ) -> Self {
        let two = |n: usize| Ints(vec![n as i64; 2]);
        let padding = Ints(vec![(dilation * (kernel / 2)) as i64; 4]);
        let inputs: Vec<Self> = [weight].into_iter().chain(bias).collect();
        let steps = [("strides", two(stride)), ("dilations", two(dilation)), ("pads", padding)];
        self.op("Conv", &inputs, &steps)
    }

    /// Bilinear interpolation to a height and width; `how` says which places correspond.
    pub(super) fn resize(self, size: Self, how: &'static str) -> Self {
        let sizes = self.sides(0, 2).op("Concat", &[size], &[("axis", Int(0))]);
        let none = Self { name: None, ..self };
        self.op("Resize", &[none, none, sizes], &interpolation(how))
    }

    /// Bilinear interpolation at every `1/scale` of a cell, from the first one on.
    pub(super) fn enlarge(self, scale: usize) -> Self {
        let scales = self.graph.constant(&[4], &[1.0, 1.0, scale as f32, scale as f32]);
        let none = Self { name: None, ..self };
        self.op("Resize", &[none, scales], &interpolation("asymmetric"))
    }
}

fn interpolation(how: &'static str) -> [(&'static str, Attribute); 2] {
    [("mode", Text("linear")), ("coordinate_transformation_mode", Text(how))]
}

impl Attribute {
    fn encode(&self, name: &str) -> Message {
        let named = Message::new().text(1, name);
        match self {
            Float(value) => named.float(2, *value).int(20, 1),
            Int(value) => named.int(3, *value).int(20, 2),
            Text(value) => named.text(4, value).int(20, 3),
            Self::Graph(graph) => named.message(6, graph).int(20, 5),
            Ints(values) => {
                values.iter().fold(named, |message, &value| message.int(8, value)).int(20, 7)
            }
        }
    }
}

/// A value with its type and shape.
fn declared(name: &str, kind: Kind, shape: &[Side]) -> Message {
    let sides = shape.iter().map(|side| match side {
        Side::Fixed(length) => Message::new().int(1, *length as i64),
        Side::Free(name) => Message::new().text(2, name),
    });
    let shape = Message::new().messages(1, &sides.collect::<Vec<_>>());
    let tensor = Message::new().int(1, kind as i64).message(2, &shape);
    Message::new().text(1, name).message(2, &Message::new().message(1, &tensor))
}
