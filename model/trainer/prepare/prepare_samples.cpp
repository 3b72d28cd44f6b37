// Samples that the scenario writes down: what the model gets, and what the loss compares with.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/strategy/local_model/batch_values.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

/// What one sample of `inputs` or `targets` has to be.
struct SampleForm {
  Shape shape;
  uint64_t classes = 0;           ///< whole numbers from 0 to below it; 0: any number
  std::string_view whole_name{};  ///< what such a number is called
};

SampleForm input_form(const Network& network) {
  SampleForm form{network.input_of(0)};
  if (!is_floating(network.input_dtype_of(0))) {
    form.classes = tokens_of(network, 0);
    form.whole_name = "token";
  }
  return form;
}

// torch's losses: a class index stands where the scores have their last dimension.
SampleForm target_form(const Network& network) {
  const Layer& loss = network.loss_of(0);
  SampleForm form{loss.input};
  if (has_class_targets(loss.kind)) {
    form.classes = static_cast<uint64_t>(target_classes(loss));
    form.whole_name = "class";
    form.shape.pop_back();
    if (compares_samples(loss.kind)) {
      form.shape = {};  // a label
      constexpr uint64_t labels = uint64_t{1} << 31;
      form.classes = loss.kind == LayerKind::sup_con_loss ? labels : 0;  // else nothing reads it
    }
  }
  return form;
}

std::string text_of_sample(const Shape& shape) {
  return shape.empty() ? "one number" : "shape " + text_of(shape);
}

/// A file has a line for each sample; lists are nested as torch prints the tensor.
bool fits(const TensorValues& values, const Shape& sample) {
  if (values.csv) {
    return values.shape.at(1) == elements_of(sample);
  }
  return std::equal(values.shape.begin() + 1, values.shape.end(), sample.begin(), sample.end());
}

void check_shape(Preparation& preparation, const TensorValues& values, const SampleForm& form) {
  if (values.csv) {
    add_problem(
        preparation, Kind::invalid, values.csv->place,
        fmt::format("{} has {} numbers in a line, but a sample of `{}` has {}", values.csv->value,
                    values.shape.at(1), values.name, elements_of(form.shape)),
        "write a line for each sample");
    return;
  }
  const Shape given(values.shape.begin() + 1, values.shape.end());
  add_problem(preparation, Kind::invalid, values.place,
              fmt::format("a sample of `{}` has {}, but the model's has {}", values.name,
                          text_of_sample(given), text_of_sample(form.shape)),
              "write a row for each sample, nested as torch prints the tensor");
}

bool check_classes(Preparation& preparation, const TensorValues& values, const SampleForm& form) {
  if (form.classes == 0) {
    return true;
  }
  const auto wrong = std::ranges::find_if(*values.numbers, [&](double number) {
    return !(number >= 0 && number < static_cast<double>(form.classes) &&
             number == std::floor(number));
  });
  if (wrong == values.numbers->end()) {
    return true;
  }
  const int64_t sample =
      (wrong - values.numbers->begin()) / std::max<int64_t>(1, elements_of(form.shape));
  add_problem(preparation, Kind::invalid, values.csv ? values.csv->place : values.place,
              fmt::format("sample {} of `{}` holds {}, but a {} is a whole number from 0 to {}",
                          sample, values.name, *wrong, form.whole_name, form.classes - 1));
  return false;
}

GivenSamples::Rows rows_of(Preparation& preparation, const std::optional<TensorValues>& values,
                           const SampleForm& form, const LoaderSettings& settings) {
  if (!values || !values->numbers) {
    return {};
  }
  const SourcePlace place = values->csv ? values->csv->place : values->place;
  if (settings.batches) {
    add_problem(preparation, Kind::invalid, place,
                fmt::format("`{}` and `batches` exclude each other: samples that are written down "
                            "have numbers",
                            values->name),
                "give `samples`, or nothing: there are as many as rows");
    return {};
  }
  if (!fits(*values, form.shape)) {
    check_shape(preparation, *values, form);
    return {};
  }
  if (values->shape.front() < settings.samples) {
    add_problem(preparation, Kind::invalid, place,
                fmt::format("`{}` holds {} of {} samples", values->name, values->shape.front(),
                            settings.samples),
                "leave `samples` out: there are as many as rows");
    return {};
  }
  if (!check_classes(preparation, *values, form)) {
    return {};
  }
  return {elements_of(form.shape), values->numbers};
}

}  // namespace

std::shared_ptr<const GivenSamples> prepare_samples(Preparation& preparation,
                                                    const LoaderSpec& spec,
                                                    const LoaderSettings& settings,
                                                    const Network& network) {
  if (!spec.inputs && !spec.targets) {
    return nullptr;
  }
  if (!network.modules.empty()) {
    add_problem(preparation, Kind::unsupported,
                spec.inputs ? spec.inputs->place : spec.targets->place,
                "samples of a model with several modules are drawn from the seed: `inputs` and "
                "`targets` are not modelled there");
    return nullptr;
  }
  auto given = std::make_shared<GivenSamples>();
  given->inputs = rows_of(preparation, spec.inputs, input_form(network), settings);
  given->targets = rows_of(preparation, spec.targets, target_form(network), settings);
  return given;
}

}  // namespace lockstep
