//! An ONNX graph in the making: operations on named values.

use std::collections::BTreeSet;

use crate::{model::params::Array, protobuf::Message};

/// The version of the operators, and of the file format that it came with.
const OPERATORS: i64 = 18;
const FORMAT: i64 = 8;

/// Types of tensors, as ONNX numbers them.
pub(super) const FLOAT: i64 = 1;
pub(super) const INT: i64 = 7;
pub(super) const BOOL: i64 = 9;
pub(super) const DOUBLE: i64 = 11;

/// The name of a value.
pub(super) type Value = String;

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
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    /// Constants by the name that they were given.
    named: BTreeSet<String>,
    count: usize,
    /// What names of values begin with, so that those of an inner graph are its own.
    prefix: &'static str,
}

impl Graph {
    /// A graph within another one, whose values it may use.
    pub(super) fn inner(prefix: &'static str) -> Self {
        Self { prefix, ..Self::default() }
    }

    fn fresh(&mut self) -> Value {
        self.count += 1;
        format!("{}v{}", self.prefix, self.count)
    }

    /// Adds an operation with one result.
    pub(super) fn op(
        &mut self,
        kind: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        let [output] = self.ops(kind, inputs, attributes);
        output
    }

    /// Adds an operation with several results.
    pub(super) fn ops<const N: usize>(
        &mut self,
        kind: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> [Value; N] {
        let outputs = std::array::from_fn(|_| self.fresh());
        let inputs = inputs.iter().fold(Message::new(), |node, input| node.text(1, input));
        let node = outputs.iter().fold(inputs, |node, output| node.text(2, output)).text(4, kind);
        let node = attributes
            .iter()
            .fold(node, |node, (name, value)| node.message(5, &value.encode(name)));
        self.nodes.push(node);
        outputs
    }

    /// A weight under its own name; one that is there already is shared.
    pub(super) fn weight(&mut self, name: &str, array: &Array) -> Value {
        if self.named.insert(name.to_owned()) {
            let bytes = array.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.constant(name, FLOAT, &array.shape, bytes);
        }
        name.to_owned()
    }

    /// A constant of single precision.
    pub(super) fn floats(&mut self, shape: &[usize], values: &[f32]) -> Value {
        let name = self.fresh();
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(&name, FLOAT, shape, bytes);
        name
    }

    /// A constant of double precision.
    pub(super) fn doubles(&mut self, shape: &[usize], values: &[f64]) -> Value {
        let name = self.fresh();
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(&name, DOUBLE, shape, bytes);
        name
    }

    /// A constant line of integers.
    pub(super) fn ints(&mut self, values: &[i64]) -> Value {
        let name = self.fresh();
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(&name, INT, &[values.len()], bytes);
        name
    }

    /// A single number of single precision.
    pub(super) fn float(&mut self, value: f64) -> Value {
        self.floats(&[], &[value as f32])
    }

    /// A single number of double precision.
    pub(super) fn double(&mut self, value: f64) -> Value {
        self.doubles(&[], &[value])
    }

    fn constant(&mut self, name: &str, kind: i64, shape: &[usize], bytes: Vec<u8>) {
        let sides = shape.iter().fold(Message::new(), |tensor, &side| tensor.int(1, side as i64));
        self.constants.push(sides.int(2, kind).text(8, name).bytes(9, &bytes));
    }

    /// Declares what is given.
    pub(super) fn input(&mut self, name: &str, kind: i64, shape: &[Side]) -> Value {
        self.inputs.push(declared(name, kind, shape));
        name.to_owned()
    }

    /// Declares what comes out, under a name of its own.
    pub(super) fn output(&mut self, name: &str, value: &Value, kind: i64, shape: &[Side]) {
        let node = Message::new().text(1, value).text(2, name).text(4, "Identity");
        self.nodes.push(node);
        self.outputs.push(declared(name, kind, shape));
    }

    /// The graph, to be part of a model or of an operation.
    pub(super) fn encode(self, name: &str) -> Message {
        Message::new()
            .messages(1, &self.nodes)
            .text(2, name)
            .messages(5, &self.constants)
            .messages(11, &self.inputs)
            .messages(12, &self.outputs)
    }

    /// A model of this graph, with notes beside it.
    pub(super) fn model(self, notes: &[(&str, String)]) -> Vec<u8> {
        let note =
            |(key, value): &(&str, String)| Message::new().text(1, key).text(2, value.as_str());
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

/// What is done often, by name.
impl Graph {
    pub(super) fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Add", &[a, b], &[])
    }

    pub(super) fn sub(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Sub", &[a, b], &[])
    }

    pub(super) fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Mul", &[a, b], &[])
    }

    pub(super) fn div(&mut self, a: &Value, b: &Value) -> Value {
        self.op("Div", &[a, b], &[])
    }

    pub(super) fn matmul(&mut self, a: &Value, b: &Value) -> Value {
        self.op("MatMul", &[a, b], &[])
    }

    pub(super) fn cast(&mut self, a: &Value, kind: i64) -> Value {
        self.op("Cast", &[a], &[("to", Int(kind))])
    }

    pub(super) fn reshape(&mut self, a: &Value, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.op("Reshape", &[a, &shape], &[])
    }

    /// A reduction, such as `ReduceSum`, along axes that stay with length 1.
    pub(super) fn reduce(&mut self, kind: &str, a: &Value, axes: &[i64]) -> Value {
        let axes = self.ints(axes);
        self.op(kind, &[a, &axes], &[("keepdims", Int(1))])
    }

    pub(super) fn softmax(&mut self, a: &Value) -> Value {
        self.op("Softmax", &[a], &[("axis", Int(1))])
    }

    /// Part of an axis, from a place on and before another.
    pub(super) fn slice(&mut self, a: &Value, from: &Value, to: &Value, axes: &[i64]) -> Value {
        let axes = self.ints(axes);
        self.op("Slice", &[a, from, to, &axes], &[])
    }

    /// Height and width of `[1, C, H, W]`, as a line of two integers.
    pub(super) fn size(&mut self, a: &Value) -> Value {
        self.op("Shape", &[a], &[("start", Int(2)), ("end", Int(4))])
    }

    /// The number of cells of `[1, C, H, W]`, as a line of one integer.
    pub(super) fn cells(&mut self, a: &Value) -> Value {
        let size = self.size(a);
        self.reduce("ReduceProd", &size, &[0])
    }

    /// `[1, C, h, w]` → `[1, C, n]`
    pub(super) fn flat(&mut self, maps: &Value) -> Value {
        self.reshape(maps, &[0, 0, -1])
    }

    /// The highest (or lowest) `k` of the last axis; `k` is a line of one integer.
    pub(super) fn top(&mut self, a: &Value, k: &Value, highest: bool) -> Value {
        let highest = ("largest", Int(i64::from(highest)));
        let [values, _] = self.ops("TopK", &[a, k], &[("axis", Int(-1)), highest]);
        values
    }

    /// A convolution of `[out, in, k, k]` weights, padded so that stride alone decides the size.
    pub(super) fn conv(
        &mut self,
        x: &Value,
        weight: &Value,
        bias: Option<&Value>,
        kernel: usize,
        [stride, dilation]: [usize; 2],
    ) -> Value {
        let two = |n: usize| Ints(vec![n as i64; 2]);
        let padding = Ints(vec![(dilation * (kernel / 2)) as i64; 4]);
        let inputs: Vec<&Value> = [x, weight].into_iter().chain(bias).collect();
        let steps = [("strides", two(stride)), ("dilations", two(dilation)), ("pads", padding)];
        self.op("Conv", &inputs, &steps)
    }

    /// Bilinear interpolation to a height and width; `how` says which places correspond.
    pub(super) fn resize(&mut self, x: &Value, size: &Value, how: &'static str) -> Value {
        let leading = self.op("Shape", &[x], &[("start", Int(0)), ("end", Int(2))]);
        let sizes = self.op("Concat", &[&leading, size], &[("axis", Int(0))]);
        let none = String::new();
        self.op("Resize", &[x, &none, &none, &sizes], &interpolation(how))
    }

    /// Bilinear interpolation at every `1/scale` of a cell, from the first one on.
    pub(super) fn enlarge(&mut self, x: &Value, scale: usize) -> Value {
        let scales = self.floats(&[4], &[1.0, 1.0, scale as f32, scale as f32]);
        let none = String::new();
        self.op("Resize", &[x, &none, &scales], &interpolation("asymmetric"))
    }

    pub(super) fn clip(&mut self, x: &Value, low: &Value, high: &Value) -> Value {
        self.op("Clip", &[x, low, high], &[])
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
fn declared(name: &str, kind: i64, shape: &[Side]) -> Message {
    let sides: Vec<Message> = shape
        .iter()
        .map(|side| match side {
            Side::Fixed(length) => Message::new().int(1, *length as i64),
            Side::Free(name) => Message::new().text(2, name),
        })
        .collect();
    let shape = Message::new().messages(1, &sides);
    let tensor = Message::new().int(1, kind).message(2, &shape);
    Message::new().text(1, name).message(2, &Message::new().message(1, &tensor))
}
