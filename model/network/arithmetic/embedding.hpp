#pragma once

#include <cstdint>
#include <optional>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.Embedding: indices int64 [positions], weight [rows, width],
// output [positions, width].

/// Which rows of a table the weight has.
struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  /// Of a part: its first row, and indices of rows beside it give 0. Nothing: it is the whole
  /// table, and an index outside of [0, rows) throws ArithmeticError.
  std::optional<int64_t> first_row{};
};

/// output[p] = weight[indices[p]]
void embedding_forward(const Values& indices, const Values& weight, const EmbeddingShape& shape,
                       Values& output);
/// weight_gradient[indices[p]] += output_gradient[p], positions in increasing order.
void embedding_weight_gradient(const Values& indices, const Values& output_gradient,
                               const EmbeddingShape& shape, Values& weight_gradient);

// A positional embedding, as GPT-2's wpe: input and output [batch, positions, width], weight
// [rows, width] with at least as many rows as positions.

/// output[b, p] = input[b, p] + weight[p]
void positional_embedding_forward(const Values& input, const Values& weight, int64_t batch,
                                  Values& output);
/// weight_gradient[p] += sum of output_gradient[b, p] over the batch, samples in increasing order.
void positional_embedding_weight_gradient(const Values& output_gradient, int64_t batch,
                                          Values& weight_gradient);

}  // namespace lockstep
