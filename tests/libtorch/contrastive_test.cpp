// Losses that compare samples: both steps, on LibTorch and by the reference arithmetic.
#include <algorithm>
#include <catch2/catch.hpp>

#include "model/network/contrastive_part.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::contrastive_test {

namespace {

constexpr int64_t features = 4;
constexpr auto views_part = static_cast<double>(ContrastivePart::views);
constexpr auto comparison_part = static_cast<double>(ContrastivePart::comparison);

Network contrastive(const std::string& loss, double temperature) {
  return network_of({2, features}, {layer("ReLU")}, layer(loss, {{"temperature", temperature}}));
}

// Labels of which some are equal.
Values labels_of(int64_t samples) {
  Values labels(DType::int64, samples);
  for (int64_t sample = 0; sample < samples; ++sample) {
    labels.set_integer(sample, sample % 2);
  }
  return labels;
}

/// A rank with `samples` of its own, the first of which is `first` among `all_samples`.
struct Ranks {
  int64_t samples = 0;
  int64_t all_samples = 0;
  int64_t first = 0;
};

std::vector<Values> results(const Execute& execute, const Network& network, DType dtype,
                            const Ranks& ranks) {
  const int64_t own = ranks.samples * features;
  const int64_t all = ranks.all_samples * features;
  Memory memory;
  const auto made = [&](int64_t elements) { return memory.add(Values(dtype, elements)); };
  const Slice output = memory.add(reals(dtype, 2 * own, 1));
  const std::vector<Slice> views{made(own), made(own)};
  run_kernel(execute, memory, Kernel::loss_forward, {output}, views, {views_part}, &network);
  std::vector<Slice> compared{views[0], views[1], memory.add(reals(dtype, all, 2)),
                              memory.add(reals(dtype, all, 3))};
  if (network.loss.kind == LayerKind::sup_con_loss) {
    compared.push_back(memory.add(labels_of(ranks.all_samples)));
  }
  const Slice loss = memory.add(Values(DType::fp32, 1));
  const auto first = static_cast<double>(ranks.first);
  run_kernel(execute, memory, Kernel::loss_forward, compared, {loss}, {comparison_part, first},
             &network);
  const std::vector<Slice> gradients{made(own), made(own), made(all), made(all)};
  run_kernel(execute, memory, Kernel::loss_backward, compared, gradients,
             {0.5, comparison_part, first}, &network);
  const Slice gradient = made(2 * own);
  const std::vector<Slice> reads{output, gradients[0], gradients[1],
                                 gradients[2].part(ranks.first * features, own),
                                 gradients[3].part(ranks.first * features, own)};
  run_kernel(execute, memory, Kernel::loss_backward, reads, {gradient}, {0.5, views_part},
             &network);
  std::vector<Values> values;
  for (const Slice& slice : {views[0], views[1], loss, gradients[0], gradients[1], gradients[2],
                             gradients[3], gradient}) {
    values.push_back(memory.load(slice));
  }
  return values;
}

}  // namespace

TEST_CASE("a contrastive loss is LibTorch's, alone and among the samples of other ranks") {
  const std::string loss =
      GENERATE(as<std::string>{}, "NTXentLoss", "InfoNCE", "ClipLoss", "SigLipLoss", "SupConLoss");
  for (const Ranks ranks : {Ranks{3, 3, 0}, Ranks{3, 9, 3}, Ranks{1, 4, 3}, Ranks{1, 1, 0}}) {
    for (const DType dtype : {DType::fp64, DType::fp32}) {
      for (const double temperature : {0.5, 0.1}) {
        INFO(loss << " " << name_of(dtype) << " " << ranks.samples << " of " << ranks.all_samples
                  << " at " << temperature);
        const Network network = contrastive(loss, temperature);
        const auto ours = results(libtorch(), network, dtype, ranks);
        const auto theirs = results(reference(), network, dtype, ranks);
        // Of drawn numbers up to 2 the similarities reach 4 * 4 / temperature, and every result is
        // made of at most 100 roundings of numbers of that size; the loss itself is kept in fp32.
        const double scale = 16 / temperature;
        for (size_t i = 0; i < ours.size(); ++i) {
          INFO("result " << i);
          const DType kept = i == 2 ? DType::fp32 : dtype;
          CHECK(distance(ours[i], theirs[i]) <=
                100 * scale * unit_roundoff(kept) * std::max(1.0, greatest(theirs[i])));
        }
      }
    }
  }
}

}  // namespace lockstep::libtorch_test::contrastive_test
