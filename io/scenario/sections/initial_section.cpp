// Tensors that are written down: `initial` of a layer or a model, and the samples of a data set.
#include <fmt/format.h>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

/// Reads nested lists; every list of one depth has the same length.
class NestedNumbers {
 public:
  NestedNumbers(Reader& reader, const KeyRow& row) : reader_(reader), row_(row) {}

  bool read(const Node& node, size_t depth) {
    if (node.kind == Node::Kind::scalar) {
      return read_number(node, depth);
    }
    if (node.kind != Node::Kind::list || node.items.empty()) {
      reader_.fail_type(node, row_.key, "numbers in lists that are not empty",
                        "write [[1, 2], [3, 4]]");
      return false;
    }
    const auto length = static_cast<int64_t>(node.items.size());
    const bool is_new = shape_.size() == depth && numbers_.empty();
    if (is_new) {
      shape_.push_back(length);
    } else if (shape_.size() <= depth || shape_[depth] != length) {
      return fail_uneven(node);
    }
    for (const NodePtr& item : node.items) {
      if (!read(*item, depth + 1)) {
        return false;
      }
    }
    return true;
  }

  std::vector<int64_t> shape_;
  std::vector<double> numbers_;

 private:
  bool read_number(const Node& node, size_t depth) {
    if (depth != shape_.size()) {
      return fail_uneven(node);
    }
    const auto number = FloatForm::read(reader_, node, row_);
    numbers_.push_back(number.value_or(0));
    return number.has_value();
  }

  bool fail_uneven(const Node& node) {
    reader_.fail(node.mark, fmt::format("the lists of `{}` differ in length or depth", row_.key),
                 "write rows of equal length, such as [[1, 2], [3, 4]]");
    return false;
  }

  Reader& reader_;
  const KeyRow& row_;
};

bool read_file_name(Reader& reader, const Node& node, const KeyRow& row, TensorValues& values) {
  const bool has_file = node.entries.size() == 1 && node.entries.front().key == "csv";
  if (!has_file) {
    reader.fail_type(node, row.key, "a number, lists of numbers or `{csv: path}`",
                     "write {csv: weight.csv}");
    return false;
  }
  const Node& path = *node.entries.front().value;
  if (auto name = PathForm::read(reader, path, row)) {
    values.csv = {*name, reader.place(path)};
  }
  return values.csv.has_value();
}

bool read_numbers(Reader& reader, const Node& node, const KeyRow& row, TensorValues& values) {
  NestedNumbers nested(reader, row);
  if (!nested.read(node, 0)) {
    return false;
  }
  values.is_constant = node.kind == Node::Kind::scalar;
  values.shape = std::move(nested.shape_);
  values.numbers = std::make_shared<const std::vector<double>>(std::move(nested.numbers_));
  return true;
}

}  // namespace

std::optional<TensorValues> read_tensor_values(Reader& reader, const Node& node,
                                               const KeyRow& row) {
  TensorValues values;
  values.name = std::string(row.key);
  values.place = reader.place(node);
  const bool read = node.kind == Node::Kind::map ? read_file_name(reader, node, row, values)
                                                 : read_numbers(reader, node, row, values);
  return read ? std::optional(std::move(values)) : std::nullopt;
}

std::optional<std::vector<TensorValues>> read_initial(Reader& reader, const Node& node,
                                                      const KeyRow& row) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, row.key, "a map", "write {weight: [[1, 2]], bias: 0}");
    return std::nullopt;
  }
  std::vector<TensorValues> all;
  for (const Entry& entry : node.entries) {
    if (entry.value->kind == Node::Kind::null) {
      continue;
    }
    KeyRow one = row;
    one.key = entry.key;
    if (auto values = read_tensor_values(reader, *entry.value, one)) {
      values->place = reader.place(entry.mark);
      all.push_back(std::move(*values));
    }
  }
  return all;
}

}  // namespace lockstep
