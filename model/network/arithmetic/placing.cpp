#include "model/network/arithmetic/placing.hpp"

#include <vector>

#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// Calls visit(small, large) with each element of the larger images and the one it is taken from.
template <class Visit>
void for_each_enlarged(const UpsampleShape& shape, Visit visit) {
  const int64_t rows = shape.height * shape.vertical;
  const int64_t columns = shape.width * shape.horizontal;
  for (int64_t plane = 0; plane < shape.planes; ++plane) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t from = (plane * shape.height + row / shape.vertical) * shape.width;
        visit(from + column / shape.horizontal, (plane * rows + row) * columns + column);
      }
    }
  }
}

/// Calls visit(pixel of the image, the same in the sequence).
template <class Visit>
void for_each_patch(const PatchSequenceShape& shape, bool has_token, Visit visit) {
  const int64_t positions = shape.pixels + (has_token ? 1 : 0);
  for (int64_t sample = 0; sample < shape.batch; ++sample) {
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      for (int64_t pixel = 0; pixel < shape.pixels; ++pixel) {
        const int64_t position = sample * positions + pixel + (has_token ? 1 : 0);
        visit((sample * shape.channels + channel) * shape.pixels + pixel,
              position * shape.channels + channel);
      }
    }
  }
}

/// Where a sample's class token stands in the sequences.
int64_t token_at(const PatchSequenceShape& shape, int64_t sample) {
  return sample * (shape.pixels + 1) * shape.channels;
}

}  // namespace

void upsample_forward(const Values& input, const UpsampleShape& shape, Values& output) {
  for_each_enlarged(shape, [&](int64_t from, int64_t to) { output.set(to, input.number(from)); });
}

void upsample_backward(const Values& output_gradient, const UpsampleShape& shape,
                       Values& input_gradient) {
  with_accumulator({&output_gradient, &input_gradient}, [&]<class T>(T) {
    const std::vector<T> dy = numbers_of<T>(output_gradient);
    std::vector<T> dx(static_cast<size_t>(input_gradient.size()));
    for_each_enlarged(shape, [&](int64_t from, int64_t to) {
      dx[static_cast<size_t>(from)] += dy[static_cast<size_t>(to)];
    });
    store_numbers(dx, input_gradient);
  });
}

void patch_sequence_forward(const Values& input, const Values* token,
                            const PatchSequenceShape& shape, Values& output) {
  for_each_patch(shape, token != nullptr,
                 [&](int64_t from, int64_t to) { output.set(to, input.number(from)); });
  for (int64_t sample = 0; token != nullptr && sample < shape.batch; ++sample) {
    for (int64_t i = 0; i < shape.channels; ++i) {
      output.set(token_at(shape, sample) + i, token->number(i));
    }
  }
}

void patch_sequence_backward(const Values& output_gradient, bool has_token,
                             const PatchSequenceShape& shape, Values* input_gradient,
                             Values* token_gradient) {
  if (input_gradient != nullptr) {
    for_each_patch(shape, has_token, [&](int64_t from, int64_t to) {
      input_gradient->set(from, output_gradient.number(to));
    });
  }
  if (token_gradient == nullptr) {
    return;
  }
  with_accumulator({&output_gradient, token_gradient}, [&]<class T>(T) {
    std::vector<T> sums(static_cast<size_t>(shape.channels));
    for (int64_t sample = 0; sample < shape.batch; ++sample) {
      for (int64_t i = 0; i < shape.channels; ++i) {
        sums[static_cast<size_t>(i)] +=
            static_cast<T>(output_gradient.number(token_at(shape, sample) + i));
      }
    }
    accumulate_numbers(sums, *token_gradient);
  });
}

void swap_outer(const Values& from, int64_t rows, int64_t columns, Values& to) {
  ensure(from.size() == to.size() && rows * columns > 0 && from.size() % (rows * columns) == 0,
         "whole blocks trade places");
  const int64_t rest = from.size() / (rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t i = 0; i < rest; ++i) {
        to.set((column * rows + row) * rest + i, from.number((row * columns + column) * rest + i));
      }
    }
  }
}

namespace {

/// Calls visit(place in the input, place in the output) for every element of a batch of `elements`.
template <class Visit>
void for_each_permuted(int64_t elements, const Shape& shape, const std::vector<size_t>& order,
                       Visit visit) {
  const auto whole = elements_of(shape);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * shape[d];
  }
  for (int64_t to = 0; to < elements; ++to) {
    int64_t rest = to % whole;
    int64_t from = to - rest;
    for (size_t d = order.size(); d-- > 0;) {
      from += rest % shape[order[d]] * strides[order[d]];
      rest /= shape[order[d]];
    }
    visit(from, to);
  }
}

/// Calls visit(place in the image, place in the merged one) for every element of a batch.
template <class Visit>
void for_each_merged(int64_t elements, const Shape& image, Visit visit) {
  const int64_t channels = image[2];
  const int64_t rows = (image[0] + 1) / 2;
  const int64_t columns = (image[1] + 1) / 2;
  for (int64_t from = 0; from < elements; ++from) {
    const int64_t pixel = from / channels;
    const int64_t sample = pixel / (image[0] * image[1]);
    const int64_t y = pixel / image[1] % image[0];
    const int64_t x = pixel % image[1];
    const int64_t part = 2 * (x % 2) + y % 2;
    const int64_t merged = (sample * rows + y / 2) * columns + x / 2;
    visit(from, (merged * 4 + part) * channels + from % channels);
  }
}

}  // namespace

void permute_forward(const Values& from, const Shape& shape, const std::vector<size_t>& order,
                     Values& to) {
  for_each_permuted(from.size(), shape, order,
                    [&](int64_t source, int64_t place) { to.set(place, from.number(source)); });
}

void permute_backward(const Values& output_gradient, const Shape& shape,
                      const std::vector<size_t>& order, Values& input_gradient) {
  for_each_permuted(output_gradient.size(), shape, order, [&](int64_t source, int64_t place) {
    input_gradient.set(source, output_gradient.number(place));
  });
}

void merge_patches(const Values& from, const Shape& image, Values& to) {
  to = Values(to.dtype(), to.size());
  for_each_merged(from.size(), image,
                  [&](int64_t source, int64_t place) { to.set(place, from.number(source)); });
}

void part_patches(const Values& output_gradient, const Shape& image, Values& input_gradient) {
  for_each_merged(input_gradient.size(), image, [&](int64_t source, int64_t place) {
    input_gradient.set(source, output_gradient.number(place));
  });
}

void take_columns(const Values& from, int64_t rows, int64_t begin, int64_t count, Values& taken) {
  ensure(taken.size() == rows * count, "columns fit");
  const int64_t width = from.size() / rows;
  for (int64_t i = 0; i < taken.size(); ++i) {
    taken.set(i, from.number(i / count * width + begin + i % count));
  }
}

void put_columns(const Values& columns, int64_t rows, int64_t begin, Values& to) {
  const int64_t width = to.size() / rows;
  const int64_t count = columns.size() / rows;
  for (int64_t i = 0; i < columns.size(); ++i) {
    to.set(i / count * width + begin + i % count, columns.number(i));
  }
}

}  // namespace lockstep
