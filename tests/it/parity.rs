//! The same numbers as Pillow, torchvision and PyTorch, from fixtures they made.

mod augment;
