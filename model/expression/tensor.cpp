#include "model/expression/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

DType floating_type(DType dtype) { return is_floating(dtype) ? dtype : DType::fp32; }

DType type_of_number(const Value& number) {
  switch (number.kind()) {
    case Value::Kind::boolean: return DType::uint8;
    case Value::Kind::integer: return DType::int64;
    default: return DType::fp32;
  }
}

void set_number(Values& values, int64_t index, const Value& number) {
  if (number.is(Value::Kind::integer)) {
    values.set_integer(index, number.integer());
  } else {
    values.set(index, number.number());
  }
}

void check_fits(const Value& number) {
  if (number.is(Value::Kind::floating) && std::isfinite(number.floating()) &&
      std::fabs(number.floating()) > std::numeric_limits<float>::max()) {
    throw OperationError(fmt::format("{} does not fit in an fp32 tensor", text_of(number)));
  }
}

// As `stacked`, without a tensor for each number: the columns of a batch are such lists.
Tensor of_numbers(const List& numbers) {
  DType dtype = type_of_number(numbers.front());
  for (const Value& number : numbers) {
    check_fits(number);
    dtype = promoted(dtype, type_of_number(number));
  }
  const auto size = static_cast<int64_t>(numbers.size());
  Tensor result{{size}, Values(dtype, size)};
  for (int64_t i = 0; i < size; ++i) {
    set_number(result.values, i, numbers[static_cast<size_t>(i)]);
  }
  return result;
}

template <class Function>
Tensor mapped(const Tensor& tensor, DType dtype, Function function) {
  Tensor result{tensor.shape, Values(dtype, tensor.values.size())};
  for (int64_t i = 0; i < tensor.values.size(); ++i) {
    result.values.set(i, function(tensor.values.number(i)));
  }
  return result;
}

Tensor stacked(const std::vector<Tensor>& items) {
  DType dtype = items.empty() ? DType::fp32 : items.front().values.dtype();
  for (const Tensor& item : items) {
    dtype = promoted(dtype, item.values.dtype());
    if (item.shape != items.front().shape) {
      throw OperationError("the items of the list differ in shape, so it makes no tensor");
    }
  }
  Tensor result{{static_cast<int64_t>(items.size())}, Values()};
  if (!items.empty()) {
    result.shape.insert(result.shape.end(), items[0].shape.begin(), items[0].shape.end());
  }
  result.values = Values(dtype, element_count(result.shape));
  int64_t index = 0;
  for (const Tensor& item : items) {
    for (int64_t i = 0; i < item.values.size(); ++i, ++index) {
      if (is_floating(dtype)) {
        result.values.set(index, item.values.number(i));
      } else {
        result.values.set_integer(index, item.values.integer(i));
      }
    }
  }
  return result;
}

}  // namespace

Tensor tensor_of(const Value& value) {
  if (value.is(Value::Kind::tensor)) {
    return value.tensor();
  }
  if (value.is_number()) {
    return full({}, value);
  }
  if (!value.is(Value::Kind::list)) {
    throw OperationError(fmt::format("{} is no tensor, number or list of numbers", type_of(value)));
  }
  const List& list = value.list();
  if (!list.empty() &&
      std::all_of(list.begin(), list.end(), [](const Value& item) { return item.is_number(); })) {
    return of_numbers(list);
  }
  std::vector<Tensor> items;
  items.reserve(list.size());
  for (const Value& item : list) {
    items.push_back(tensor_of(item));
  }
  return stacked(items);
}

Tensor full(std::vector<int64_t> shape, const Value& number) {
  const int64_t elements = element_count(shape);
  Tensor result{std::move(shape), Values(type_of_number(number), elements)};
  check_fits(number);
  for (int64_t i = 0; i < elements; ++i) {
    set_number(result.values, i, number);
  }
  return result;
}

Tensor arange(int64_t count) {
  Tensor result{{count}, Values(DType::int64, count)};
  for (int64_t i = 0; i < count; ++i) {
    result.values.set_integer(i, i);
  }
  return result;
}

Tensor sum(const Tensor& tensor) {
  const Values& values = tensor.values;
  if (is_floating(values.dtype())) {
    double total = 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      total += values.number(i);
    }
    return {{}, Values::of(values.dtype(), {total})};
  }
  uint64_t total = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    total += static_cast<uint64_t>(values.integer(i));
  }
  Tensor result{{}, Values(DType::int64, 1)};
  result.values.set_integer(0, static_cast<int64_t>(total));
  return result;
}

Tensor mean(const Tensor& tensor) {
  double total = 0;
  for (int64_t i = 0; i < tensor.values.size(); ++i) {
    total += tensor.values.number(i);
  }
  const double count = static_cast<double>(tensor.values.size());
  const double average = count == 0 ? std::numeric_limits<double>::quiet_NaN() : total / count;
  return {{}, Values::of(floating_type(tensor.values.dtype()), {average})};
}

Tensor extreme(Operator less_or_greater, const Tensor& tensor) {
  const Values& values = tensor.values;
  if (values.empty()) {
    throw OperationError("an empty tensor has no smallest or largest element");
  }
  const bool least = less_or_greater == Operator::less;
  int64_t best = 0;
  for (int64_t i = 1; i < values.size() && !std::isnan(values.number(best)); ++i) {
    const bool better =
        is_floating(values.dtype())
            ? (std::isnan(values.number(i)) || (least ? values.number(i) < values.number(best)
                                                      : values.number(i) > values.number(best)))
            : (least ? values.integer(i) < values.integer(best)
                     : values.integer(i) > values.integer(best));
    best = better ? i : best;
  }
  return {{}, values.slice(best, 1)};
}

Tensor absolute(const Tensor& tensor) {
  if (is_floating(tensor.values.dtype())) {
    return mapped(tensor, tensor.values.dtype(), [](double x) { return std::fabs(x); });
  }
  Tensor result = tensor;
  for (int64_t i = 0; i < result.values.size(); ++i) {
    const int64_t number = result.values.integer(i);
    const auto bits = static_cast<uint64_t>(number);  // |smallest int64| wraps to itself
    result.values.set_integer(i, number < 0 ? static_cast<int64_t>(0 - bits) : number);
  }
  return result;
}

Tensor square_root(const Tensor& tensor) {
  return mapped(tensor, floating_type(tensor.values.dtype()),
                [](double x) { return std::sqrt(x); });
}

Tensor exponential(const Tensor& tensor) {
  return mapped(tensor, floating_type(tensor.values.dtype()), [](double x) { return std::exp(x); });
}

Tensor logarithm(const Tensor& tensor) {
  return mapped(tensor, floating_type(tensor.values.dtype()), [](double x) { return std::log(x); });
}

Tensor is_nan(const Tensor& tensor) {
  return mapped(tensor, DType::uint8, [](double x) { return std::isnan(x) ? 1.0 : 0.0; });
}

Tensor softmax(const Tensor& tensor) {
  const int64_t count = tensor.values.size();
  const int64_t width = tensor.shape.empty() ? 1 : tensor.shape.back();
  Tensor result{tensor.shape, Values(floating_type(tensor.values.dtype()), count)};
  for (int64_t begin = 0; begin < count; begin += width) {
    double largest = tensor.values.number(begin);
    for (int64_t i = begin; i < begin + width; ++i) {
      largest = std::max(largest, tensor.values.number(i));
    }
    double total = 0;
    for (int64_t i = begin; i < begin + width; ++i) {
      total += std::exp(tensor.values.number(i) - largest);
    }
    for (int64_t i = begin; i < begin + width; ++i) {
      result.values.set(i, std::exp(tensor.values.number(i) - largest) / total);
    }
  }
  return result;
}

Tensor concat(const std::vector<Tensor>& parts) {
  if (parts.empty()) {
    throw OperationError("concat of nothing has no shape", "give it at least one tensor");
  }
  const auto rest = [](const Tensor& part) {
    return part.shape.empty() ? std::vector<int64_t>{}
                              : std::vector<int64_t>(part.shape.begin() + 1, part.shape.end());
  };
  Tensor result{{0}, Values()};
  const std::vector<int64_t> first_rest = rest(parts.front());
  DType dtype = parts.front().values.dtype();
  int64_t elements = 0;
  for (const Tensor& part : parts) {
    if (rest(part) != first_rest) {
      throw OperationError(
          fmt::format("concat takes tensors that differ in the first dimension "
                      "only, not {} and {}",
                      text_of_shape(parts.front().shape), text_of_shape(part.shape)));
    }
    dtype = promoted(dtype, part.values.dtype());
    result.shape[0] =
        narrow_to_int64(Int128{result.shape[0]} + (part.shape.empty() ? 1 : part.shape[0]));
    elements += part.values.size();
  }
  result.shape.insert(result.shape.end(), first_rest.begin(), first_rest.end());
  result.values = Values(dtype, elements);
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    for (int64_t i = 0; i < part.values.size(); ++i, ++begin) {
      if (is_floating(dtype)) {
        result.values.set(begin, part.values.number(i));
      } else {
        result.values.set_integer(begin, part.values.integer(i));
      }
    }
  }
  return result;
}

Tensor at(const Tensor& tensor, int64_t index) {
  if (tensor.shape.empty()) {
    throw OperationError("a tensor of shape [] has no elements to index");
  }
  const int64_t length = tensor.shape.front();
  const int64_t position = index < 0 ? index + length : index;
  if (position < 0 || position >= length) {
    throw OperationError(fmt::format("index {} is out of range: the tensor has shape {}", index,
                                     text_of_shape(tensor.shape)));
  }
  const int64_t part = tensor.values.size() / length;
  return {{tensor.shape.begin() + 1, tensor.shape.end()},
          tensor.values.slice(position * part, part)};
}

}  // namespace lockstep
