// The values with which parameters and buffers start, where a description gives them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/network_builder.hpp"

namespace lockstep {

namespace {

std::vector<std::string> tensors_of(const Layer& layer) {
  std::vector<std::string> names;
  for (const ParameterTensor& parameter : layer.parameters) {
    names.push_back(parameter.name);
  }
  for (const BufferTensor& buffer : layer.buffers) {
    names.push_back(buffer.name);
  }
  return names;
}

std::string remedy_for(const Layer& layer) {
  const std::vector<std::string> names = tensors_of(layer);
  return names.empty() ? "remove it: the layer has neither parameters nor buffers"
                       : fmt::format("name one of: {}", fmt::join(names, ", "));
}

/// Rows and columns of a file of numbers fit a tensor whose first size is the rows; what has one
/// dimension may stand in one line or in one column.
bool file_fits(const std::vector<int64_t>& rows_and_columns, const Shape& shape) {
  const int64_t rows = rows_and_columns.at(0);
  const int64_t columns = rows_and_columns.at(1);
  if (shape.size() < 2) {
    return std::min(rows, columns) == 1 && rows * columns == elements_of(shape);
  }
  return rows == shape[0] && rows * columns == elements_of(shape);
}

std::string expected_file(const Shape& shape) {
  if (shape.size() < 2) {
    return fmt::format("write {} numbers, in one line or one in each line", elements_of(shape));
  }
  return fmt::format("write {} lines of {} numbers", shape[0], elements_of(shape) / shape[0]);
}

}  // namespace

void NetworkBuilder::read_initial(const TensorValues& values, const std::string& tensor,
                                  Layer& layer, const std::string& path) {
  const std::string name = layer.name + "." + tensor;
  const auto refuse = [&](std::string message, std::string remedy) {
    complain(path, values.place, std::move(message), std::move(remedy));
  };
  const auto parameter = std::ranges::find(layer.parameters, tensor, &ParameterTensor::name);
  const auto buffer = std::ranges::find(layer.buffers, tensor, &BufferTensor::name);
  if (parameter == layer.parameters.end() && buffer == layer.buffers.end()) {
    const bool is_tied = layer.tied_layer && tensor == "weight";
    refuse(fmt::format("layer `{}` ({}) has no `{}`{}", layer.name, name_of(layer.kind), tensor,
                       is_tied ? " of its own: it shares the embedding's" : ""),
           is_tied ? "give the initial values to the embedding" : remedy_for(layer));
    return;
  }
  if (!values.numbers) {
    return;  // the file that holds them could not be read: said by whoever read it
  }
  const Shape& shape = parameter != layer.parameters.end() ? parameter->shape : buffer->shape;
  if (values.csv && !file_fits(values.shape, shape)) {
    refuse(fmt::format("{} holds {} lines of {} numbers, but `{}` has shape {}", values.csv->value,
                       values.shape.at(0), values.shape.at(1), name, text_of(shape)),
           expected_file(shape));
    return;
  }
  if (!values.csv && !values.is_constant && values.shape != shape) {
    refuse(fmt::format("the initial values have shape {} ({} numbers), but `{}` has shape {} ({})",
                       text_of(values.shape), values.numbers->size(), name, text_of(shape),
                       elements_of(shape)),
           "nest the lists as torch prints the tensor; one number is for every element");
    return;
  }
  const bool is_whole = parameter == layer.parameters.end() && !is_floating(buffer->dtype);
  if (is_whole && std::ranges::any_of(*values.numbers,
                                      [](double number) { return number != std::floor(number); })) {
    refuse(fmt::format("`{}` holds whole numbers", name), "write whole numbers");
    return;
  }
  (parameter != layer.parameters.end() ? parameter->initial : buffer->initial) = values.numbers;
}

/// `LAYER.TENSOR` of the whole model; names of tensors may hold a dot themselves.
void NetworkBuilder::read_initial_of_model() {
  for (const TensorValues& values : description_.initial) {
    const std::string& name = values.name;
    Layer* found = nullptr;
    std::string tensor;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      const auto layer = layer_of_name_.find(name.substr(0, dot));
      if (layer == layer_of_name_.end()) {
        continue;
      }
      Layer& candidate = result_.network.layers[layer->second];
      const std::vector<std::string> names = tensors_of(candidate);
      const std::string rest = name.substr(dot + 1);
      if (found == nullptr || std::ranges::count(names, rest) != 0) {
        found = &candidate;
        tensor = rest;
      }
    }
    if (found == nullptr) {
      complain("initial", values.place, fmt::format("the model has no parameter `{}`", name),
               "write LAYER.PARAMETER as torch's state_dict() does, such as `0.weight`");
      continue;
    }
    read_initial(values, tensor, *found, "initial");
  }
}

}  // namespace lockstep
