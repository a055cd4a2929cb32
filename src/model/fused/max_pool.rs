//! Max pooling.

use burn::{
    backend::{
        Flex,
        autodiff::{
            checkpoint::base::Checkpointer,
            grads::Gradients,
            ops::{Backward, Ops},
        },
        flex::FlexTensor,
    },
    tensor::Tensor,
};
use conv_kernels::{Isa, pool::MaxPool};

use super::{contiguous, dims, memory, plain, recorded, register, tensor, values};

/// Side, stride and padding of the window.
const WINDOW: (usize, usize, usize) = (3, 2, 1);

/// Largest value of each 3×3 window, every second row and column; `[B, H, W, C]`.
pub(in crate::model) fn max_pool(x: Tensor<4>) -> Tensor<4> {
    if !x.is_autodiff() {
        let input = plain(x);
        let (output, _) = forward(&input);
        memory::give_back(input);
        return Tensor::from_primitive::<Flex>(output);
    }
    let (input, node) = recorded(x);
    let (output, saved) = forward(&input);
    memory::give_back(input);
    register(MaxPoolBackward, [node], saved, output)
}

#[derive(Debug, Clone)]
struct Saved {
    pool: MaxPool,
    /// Of the input.
    shape: [usize; 4],
    places: Vec<u8>,
}

fn forward(input: &FlexTensor) -> (FlexTensor, Saved) {
    let shape @ [batch, height, width, channels] = dims(input);
    let pool =
        MaxPool::new(WINDOW, batch, (height, width, channels)).expect("padding fits any image");
    let (mut output, mut places) = (memory::take(pool.output_len()), vec![0; pool.output_len()]);
    pool.forward(Isa::detect(), values(input), &mut output, &mut places);
    let (out_height, out_width) = pool.out_size();
    (tensor(output, [batch, out_height, out_width, channels]), Saved { pool, shape, places })
}

#[derive(Debug)]
struct MaxPoolBackward;

impl Backward<Flex, 1> for MaxPoolBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = contiguous(&grads.consume::<Flex>(&ops.node));
        let [Some(parent)] = ops.parents else { return };
        let Saved { pool, shape, places } = ops.state;
        let mut grad_input = memory::take(shape.iter().product());
        pool.backward(Isa::detect(), values(&grad), &places, &mut grad_input);
        memory::give_back(grad);
        grads.register::<Flex>(parent.id, tensor(grad_input, shape));
    }
}
