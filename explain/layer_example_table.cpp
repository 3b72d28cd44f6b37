#include "explain/layer_example_table.hpp"

namespace lockstep::cli {

namespace {

// Over the batches of several ranks it is not what one device would compute (LS306).
constexpr std::string_view one_gpu = "trainer: {accelerator: gpu, devices: 1, max_epochs: 1}";
constexpr std::string_view image = "[3, 8, 8]";

constexpr LayerExample layers[] = {
    {"Linear", "a layer of torch.nn, y = x W^T + b over the last dimension", "[8]",
     "{in_features: 8, out_features: 4}"},
    {"Bias", "a layer of Lockstep's own, y = x + b over the last dimension", "[8]",
     "{features: 8}"},
    {"ReLU", "a layer of torch.nn, max(x, 0) of each element", "[8]", "", "{Linear: [8, 8]}"},
    {"ReLU6", "a layer of torch.nn, each element within 0 and 6", "[8]", "", "{Linear: [8, 8]}"},
    {"LeakyReLU", "a layer of torch.nn, x where it is positive, else negative_slope times x", "[8]",
     "{negative_slope: 0.1}", "{Linear: [8, 8]}"},
    {"GELU", "a layer of torch.nn, x times the normal distribution function of x", "[8]",
     "{approximate: tanh}", "{Linear: [8, 8]}"},
    {"SiLU", "a layer of torch.nn, x times sigmoid(x)", "[8]", "", "{Linear: [8, 8]}"},
    {"Hardswish", "a layer of torch.nn, x times Hardsigmoid of x", "[8]", "", "{Linear: [8, 8]}"},
    {"Sigmoid", "a layer of torch.nn, 1 / (1 + exp(-x)) of each element", "[8]", "",
     "{Linear: [8, 8]}"},
    {"Hardsigmoid", "a layer of torch.nn, (x + 3) / 6 within 0 and 1", "[8]", "",
     "{Linear: [8, 8]}"},
    {"Tanh", "a layer of torch.nn, the hyperbolic tangent of each element", "[8]", "",
     "{Linear: [8, 8]}"},
    {"Softmax", "a layer of torch.nn, exp(x) over its sum along one dimension", "[8]", "{dim: -1}",
     "{Linear: [8, 8]}"},
    {"Identity", "a layer of torch.nn that returns its input", "[8]", "", "{Linear: [8, 8]}"},
    {"Dropout",
     "a layer of torch.nn that sets elements to 0 with probability p in training; Lockstep "
     "counts its time and memory and keeps every value",
     "[8]", "{p: 0.1}", "{Linear: [8, 8]}"},
    {"StochasticDepth",
     "a layer of torchvision that drops the branch of a residual for a sample with probability p "
     "in "
     "training; Lockstep counts its time and memory and keeps every value",
     "[8]", "{p: 0.1, mode: row}", "{Linear: [8, 8]}"},
    {"LayerScale",
     "a layer of Lockstep's own that multiplies by a parameter of `shape`, which begins as "
     "init_values; where `shape` has 1, one number is for all, as in ConvNeXt",
     image, "{shape: [3, 1, 1], init_values: 0.5}"},
    {"Flatten", "a layer of torch.nn that joins the dimensions of a sample into one", image, "",
     "{Conv2d: [3, 3, 1]}"},
    {"Embedding", "a layer of torch.nn, the row of the table that each whole number names", "[16]",
     "{num_embeddings: 100, embedding_dim: 8}"},
    {"PositionalEmbedding",
     "a layer of Lockstep's own that adds row i of its table to position i, as GPT-2's wpe",
     "[16, 8]", "{num_embeddings: 16, embedding_dim: 8}"},
    {"BatchNorm1d", "a layer of torch.nn that normalises each feature over the rank's own batch",
     "[8]", "{num_features: 8}", "", one_gpu},
    {"BatchNorm2d", "a layer of torch.nn that normalises each channel over the rank's own batch",
     image, "{num_features: 3}", "", one_gpu},
    {"BatchNorm3d", "a layer of torch.nn that normalises each channel over the rank's own batch",
     "[3, 4, 8, 8]", "{num_features: 3}", "", one_gpu},
    {"SyncBatchNorm",
     "a layer of torch.nn that normalises each channel over the batches of all "
     "ranks",
     image, "{num_features: 3}"},
    {"LayerNorm", "a layer of torch.nn that normalises each sample over its last dimensions",
     "[16, 8]", "{normalized_shape: 8}"},
    {"RMSNorm", "a layer of torch.nn that divides by the root mean square of the last dimensions",
     "[16, 8]", "{normalized_shape: 8}"},
    {"GroupNorm", "a layer of torch.nn that normalises groups of channels within each sample",
     "[4, 8, 8]", "{num_groups: 2, num_channels: 4}"},
    {"Conv1d", "a layer of torch.nn, convolution along one dimension", "[3, 16]",
     "{in_channels: 3, out_channels: 8, kernel_size: 3}"},
    {"Conv2d", "a layer of torch.nn, convolution of an image", image,
     "{in_channels: 3, out_channels: 8, kernel_size: 3, padding: 1}"},
    {"ConvTranspose2d",
     "a layer of torch.nn, the gradient of a convolution with respect to its "
     "input, which enlarges an image",
     image, "{in_channels: 3, out_channels: 8, kernel_size: 2, stride: 2}"},
    {"MaxPool2d", "a layer of torch.nn, the greatest element of each window", image,
     "{kernel_size: 2}", "{Conv2d: [3, 3, 1]}"},
    {"AvgPool2d", "a layer of torch.nn, the mean of each window", image, "{kernel_size: 2}",
     "{Conv2d: [3, 3, 1]}"},
    {"AdaptiveAvgPool2d", "a layer of torch.nn, means of as many windows as output_size asks for",
     image, "{output_size: 1}", "{Conv2d: [3, 3, 1]}"},
    {"MultiheadAttention",
     "a layer of torch.nn, self-attention: query, key and value are the input", "[16, 8]",
     "{embed_dim: 8, num_heads: 2, batch_first: true}"},
    {"CausalSelfAttention",
     "a layer of Lockstep's own, self-attention in which no position sees a later one; its "
     "parameters are named as in GPT-2",
     "[16, 8]", "{embed_dim: 8, num_heads: 2}"},
    {"GroupedQueryAttention",
     "a layer of Lockstep's own, causal self-attention with a rotary embedding, in which several "
     "query heads share a key head; its parameters are named as in Llama",
     "[16, 8]", "{embed_dim: 8, num_heads: 4, num_kv_heads: 2}"},
    {"SwiGLU",
     "a layer of Lockstep's own, down(silu(gate(x)) * up(x)); its parameters are named as in "
     "Llama's feed-forward",
     "[16, 8]", "{embed_dim: 8, hidden_dim: 24}"},
    {"MixtureOfExperts",
     "a layer of Lockstep's own: a router sends each token to top_k of num_experts feed-forwards "
     "and adds up what they give, weighted; its parameters are named as in Mixtral, or with "
     "`grouped: true` as in torchtitan. `norm_topk_prob: false` keeps the softmax over all "
     "experts; "
     "`capacity_factor` drops tokens; `imbalance` is an assumption for expert parallelism",
     "[16, 8]", "{embed_dim: 8, hidden_dim: 24, num_experts: 4, top_k: 2}"},
    {"Upsample", "a layer of torch.nn that enlarges an image, each element to its nearest", image,
     "{scale_factor: 2}", "{Conv2d: [3, 3, 1]}"},
    {"PatchSequence",
     "a layer of Lockstep's own that makes the pixels of an image the positions of a sequence, "
     "behind a learnt class token, as vision transformers do",
     image, "{channels: 3}"},
    {"FirstPosition", "a layer of Lockstep's own, the first position of a sequence", "[16, 8]", "",
     "{Linear: [8, 8]}"},
    {"Permute",
     "a layer of torchvision: the dimensions of a sample in a different order; dimension 0 is the "
     "batch "
     "and stays",
     image, "{dims: [0, 2, 3, 1]}", "{Conv2d: [3, 3, 1]}"},
    {"PatchMerging",
     "a layer of Lockstep's own: the pixels of each square of an image [height, width, channels] "
     "side by side, as between the stages of Swin",
     "[8, 8, 3]", "", "{Linear: [3, 3]}"},
    {"WindowAttention",
     "a layer of Lockstep's own, self-attention in windows of an image [height, width, channels] "
     "with a bias for each distance, shifted by shift_size; its parameters are named as in "
     "torchvision's ShiftedWindowAttention",
     "[8, 8, 8]", "{dim: 8, window_size: 4, shift_size: 2, num_heads: 2}"},
    {"Positions", "a layer of Lockstep's own, `count` positions of a sequence from `first`",
     "[16, 8]", "{first: 4, count: 8}", "{Linear: [8, 8]}"},
    {"Scale", "a layer of Lockstep's own that multiplies by a constant", "[8]", "{factor: 0.5}",
     "{Linear: [8, 8]}"},
    {"RelativePositionBias",
     "a layer of Lockstep's own, a number for each head and pair of positions, by their distance "
     "as "
     "in T5; what an Aside makes, and BiasedAttention adds to its scores",
     "[16, 8]", "{num_heads: 2}"},
    {"BiasedAttention",
     "a layer of Lockstep's own, self-attention that adds the tensor of the Aside around it to its "
     "scores, as T5's. `scaled: false` leaves out the factor 1 / sqrt(head_dim); `aside` names "
     "another Aside than the innermost. Its parameters are named as in T5",
     "[16, 8]", "{embed_dim: 8, num_heads: 2}", "", "", "{RelativePositionBias: {num_heads: 2}}"},
    {"CrossAttention",
     "a layer of Lockstep's own, attention of its input to the tensor of the Aside around it, as "
     "that of a decoder to its encoder. Its parameters are named as in T5",
     "[16, 8]", "{embed_dim: 8, num_heads: 2}", "", "", "{Linear: [8, 8]}"},
    {"TransformerEncoderLayer",
     "a module of torch.nn: self-attention and two linear layers, each with a residual connection "
     "and LayerNorm",
     "[16, 8]", "{d_model: 8, nhead: 2, dim_feedforward: 32, batch_first: true}"},
    {"LSTM",
     "a layer of torch.nn, long short-term memory from a state of zeros; its output is that of "
     "every position, what follows reads no states",
     "[16, 8]", "{input_size: 8, hidden_size: 8}"},
    {"Buffer", "register_buffer: a tensor that is part of the module and no parameter", "[8]",
     "{shape: [3], name: weights}", "{Linear: [8, 4]}"},
};

constexpr LayerExample losses[] = {
    {"CrossEntropyLoss", "a loss of torch.nn, of the scores of classes; targets are classes", "[8]",
     ""},
    {"NLLLoss", "a loss of torch.nn, of the logarithms of probabilities; targets are classes",
     "[8]", ""},
    {"MSELoss", "a loss of torch.nn, the squared difference of output and target", "[8]", ""},
    {"L1Loss", "a loss of torch.nn, the absolute difference of output and target", "[8]", ""},
    {"SmoothL1Loss",
     "a loss of torch.nn, squared where the difference is below beta, else absolute", "[8]",
     "{beta: 0.5}"},
    {"HuberLoss", "a loss of torch.nn, SmoothL1Loss times delta", "[8]", "{delta: 0.5}"},
    {"BCELoss", "a loss of torch.nn, of probabilities; each target is 0 or 1", "[8]", "",
     "Sigmoid"},
    {"BCEWithLogitsLoss", "a loss of torch.nn, of logits; each target is 0 or 1", "[8]", ""},
    {"KLDivLoss",
     "a loss of torch.nn, the divergence of probabilities from those whose logarithms the output "
     "holds",
     "[8]", "{reduction: batchmean}"},
    {"NTXentLoss",
     "lightly's contrastive loss: each of two views of a sample against all views of the batch, or "
     "with gather_distributed of all ranks",
     "[2, 8]", "{temperature: 0.1}"},
    {"InfoNCE",
     "each first view against the second views of the batch, as in info-nce-pytorch, which takes "
     "the batch for negatives",
     "[2, 8]", "{temperature: 0.2}"},
    {"ClipLoss",
     "open_clip's contrastive loss, InfoNCE both ways; with gather_distributed against all ranks",
     "[2, 8]", "{temperature: 0.1}"},
    {"SigLipLoss", "open_clip's logistic loss of every pair of a first and a second view", "[2, 8]",
     "{temperature: 0.1, bias: -5}"},
    {"SupConLoss",
     "the supervised contrastive loss: each view against all views, where those of its label "
     "belong to it; targets are labels",
     "[2, 8]", "{temperature: 0.1, base_temperature: 0.1}"},
};

}  // namespace

std::span<const LayerExample> layer_examples() { return layers; }
std::span<const LayerExample> loss_examples() { return losses; }

}  // namespace lockstep::cli
