#include "model/strategy/local_model/batch_values.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/core/random.hpp"

namespace lockstep {

namespace {

uint64_t sample_key(const TrainingPlan& plan, int64_t sample, uint64_t part) {
  return random_key(random_key(plan.seed, 0x5a3e1eULL + part), static_cast<uint64_t>(sample));
}

int64_t whole_below(uint64_t key, int64_t turn, uint64_t bound) {
  return static_cast<int64_t>(random_below(key, static_cast<uint64_t>(turn), bound));
}

/// -2, -1, 0, 1 or 2: sums of a few products of them are exact in every floating type.
double small_number(uint64_t key, int64_t turn) {
  return static_cast<double>(whole_below(key, turn, 5)) - 2;
}

/// The rows of the batch's samples, one after the other.
void fill_given(Values& values, const GivenSamples::Rows& rows, const Batch& batch) {
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    for (int64_t turn = 0; turn < rows.width; ++turn, ++i) {
      const double number = (*rows.numbers)[static_cast<size_t>(sample * rows.width + turn)];
      if (is_floating(values.dtype())) {
        values.set(i, number);
      } else {
        values.set_integer(i, static_cast<int64_t>(number));
      }
    }
  }
}

}  // namespace

/// Those that every embedding has, where several read parts of a sample: positions are no tokens.
uint64_t tokens_of(const Network& network, size_t module) {
  std::optional<int64_t> fewest;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    const auto* embedding = std::get_if<EmbeddingArguments>(&network.layers[layer].arguments);
    if (embedding != nullptr && network.layers[layer].kind == LayerKind::embedding &&
        (network.modules.empty() || network.modules[module].holds(layer))) {
      fewest = std::min(fewest.value_or(embedding->num_embeddings), embedding->num_embeddings);
    }
  }
  return static_cast<uint64_t>(fewest.value_or(2));
}

namespace {

/// The targets of a binary cross entropy are 0 or 1.
bool is_truth_value(LayerKind kind) {
  return kind == LayerKind::bce_loss || kind == LayerKind::bce_with_logits_loss;
}

/// Small numbers become probabilities over the last dimension, or their logarithms.
void become_probabilities(Values& values, const Layer& loss) {
  const int64_t width = loss.input.empty() ? 1 : loss.input.back();
  const bool logarithms = std::get<LossArguments>(loss.arguments).log_target;
  constexpr double least = 3;  // small numbers begin at -2
  for (int64_t row = 0; row < values.size(); row += width) {
    double sum = 0;
    for (int64_t i = row; i < row + width; ++i) {
      sum += values.number(i) + least;
    }
    for (int64_t i = row; i < row + width; ++i) {
      const double probability = (values.number(i) + least) / sum;
      values.set(i, logarithms ? std::log(probability) : probability);
    }
  }
}

}  // namespace

Values batch_inputs(const TrainingPlan& plan, const Batch& batch, size_t module) {
  const Network& network = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  const DType dtype = network.input_dtype_of(module);
  const bool floating = is_floating(dtype);
  const int64_t width = elements_of(network.input_of(module));
  const uint64_t tokens = tokens_of(network, module);
  Values values(floating ? plan.parameter_dtype : dtype, batch.size() * width);
  if (batch.given != nullptr && batch.given->inputs.numbers) {
    fill_given(values, batch.given->inputs, batch);
    return values;
  }
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    const uint64_t key = sample_key(plan, sample, 0);
    for (int64_t turn = 0; turn < width; ++turn, ++i) {
      if (floating) {
        values.set(i, small_number(key, turn));
      } else {
        values.set_integer(i, whole_below(key, turn, tokens));
      }
    }
  }
  return values;
}

Values batch_targets(const TrainingPlan& plan, const Batch& batch, size_t module) {
  const Network& network = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  const Layer& loss = network.loss_of(static_cast<int32_t>(module));
  const bool classes = has_class_targets(loss.kind);
  const int64_t width = target_elements(loss);
  Values values(classes ? DType::int64 : plan.parameter_dtype, batch.size() * width);
  if (batch.given != nullptr && batch.given->targets.numbers) {
    fill_given(values, batch.given->targets, batch);
    return values;
  }
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    const uint64_t key = sample_key(plan, sample, 1);
    for (int64_t turn = 0; turn < width; ++turn, ++i) {
      if (classes) {
        const auto count = static_cast<uint64_t>(target_classes(loss));
        values.set_integer(i, whole_below(key, turn, count));
      } else {
        values.set(i, is_truth_value(loss.kind) ? static_cast<double>(whole_below(key, turn, 2))
                                                : small_number(key, turn));
      }
    }
  }
  if (loss.kind == LayerKind::kl_div_loss) {
    become_probabilities(values, loss);
  }
  return values;
}

}  // namespace lockstep
