#include "model/network/arithmetic/embedding.hpp"

#include <fmt/format.h>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// The row of the weight; nothing: another part has it.
std::optional<int64_t> row_at(const Values& indices, int64_t position,
                              const EmbeddingShape& shape) {
  const int64_t row = indices.integer(position) - shape.first_row.value_or(0);
  if (row >= 0 && row < shape.rows) {
    return row;
  }
  if (shape.first_row) {
    return std::nullopt;
  }
  throw ArithmeticError(
      fmt::format("index {} at position {} of an embedding of {} rows", row, position, shape.rows),
      fmt::format("keep indices in 0 .. {} or set num_embeddings to {}", shape.rows - 1, row + 1));
}

}  // namespace

void embedding_forward(const Values& indices, const Values& weight, const EmbeddingShape& shape,
                       Values& output) {
  const int64_t width = shape.width;
  ensure(weight.size() == shape.rows * width && output.size() == indices.size() * width,
         "an embedding's operands fit");
  for (int64_t position = 0; position < indices.size(); ++position) {
    const std::optional<int64_t> row = row_at(indices, position, shape);
    for (int64_t i = 0; i < width; ++i) {
      output.set(position * width + i, row ? weight.number(*row * width + i) : 0);
    }
  }
}

void embedding_weight_gradient(const Values& indices, const Values& output_gradient,
                               const EmbeddingShape& shape, Values& weight_gradient) {
  const int64_t width = shape.width;
  ensure(weight_gradient.size() == shape.rows * width &&
             output_gradient.size() == indices.size() * width,
         "an embedding's operands fit");
  with_accumulator({&output_gradient, &weight_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(shape.rows * width));
    for (int64_t position = 0; position < indices.size(); ++position) {
      const std::optional<int64_t> row = row_at(indices, position, shape);
      for (int64_t i = 0; row && i < width; ++i) {
        dw[static_cast<size_t>(*row * width + i)] += dy[static_cast<size_t>(position * width + i)];
      }
    }
    accumulate_numbers(dw, weight_gradient);
  });
}

void positional_embedding_forward(const Values& input, const Values& weight, int64_t batch,
                                  Values& output) {
  const int64_t of_sample = input.size() / batch;
  ensure(output.size() == input.size() && weight.size() >= of_sample,
         "a positional embedding's operands fit");
  with_accumulator({&input, &weight, &output}, [&]<class T>(T) {
    std::vector<T> y = numbers_of<T>(input);
    const std::vector<T> table = numbers_of<T>(weight);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] += table[i % static_cast<size_t>(of_sample)];
    }
    store_numbers(y, output);
  });
}

void positional_embedding_weight_gradient(const Values& output_gradient, int64_t batch,
                                          Values& weight_gradient) {
  const int64_t of_sample = output_gradient.size() / batch;
  ensure(weight_gradient.size() >= of_sample, "a positional embedding's operands fit");
  with_accumulator({&output_gradient, &weight_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dw(static_cast<size_t>(weight_gradient.size()));
    for (size_t i = 0; i < dy.size(); ++i) {
      dw[i % static_cast<size_t>(of_sample)] += dy[i];
    }
    accumulate_numbers(dw, weight_gradient);
  });
}

}  // namespace lockstep
