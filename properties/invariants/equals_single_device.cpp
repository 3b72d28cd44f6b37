#include "properties/invariants/equals_single_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "properties/diagnosis/remedy.hpp"
#include "properties/logged/rounding.hpp"

namespace lockstep {

namespace {

struct Difference {
  int64_t element = -1;  ///< -1: the shapes differ
  double here = 0;
  double there = 0;
  double bound = 0;
};

// Of the finite ones: with others rounding would explain any difference.
double magnitude_of(const Values& values) {
  double magnitude = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    const double size = std::abs(values.number(i));
    magnitude = std::isfinite(size) ? std::max(magnitude, size) : magnitude;
  }
  return magnitude;
}

// Wide parameters beside narrow ones (ZeRO in 16 bits) against those of one device, which has the
// narrow ones alone: as far as these go.
DType common_type(DType here, DType there) {
  const bool are_numbers = is_floating(here) && is_floating(there);
  return are_numbers && unit_roundoff(there) > unit_roundoff(here) ? there : here;
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::fp16: return 65504;
    case DType::fp64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();  // bf16 has the same exponents
  }
}

// A sum on the way may overflow in the order of one run and not in that of the other.
bool may_have_overflowed(double one, double other, const EqualityRule& rule, DType dtype) {
  const double finite = std::abs(std::isfinite(one) ? one : other);
  const auto terms = static_cast<double>(std::max<int64_t>(1, rule.operations));
  return std::isfinite(one) != std::isfinite(other) && finite >= largest_of(dtype) / terms;
}

std::optional<Difference> difference_of(const NamedValues& run, const NamedValues& single,
                                        const EqualityRule& rule) {
  const Values& here = run.values;
  const Values& whole = single.values;
  const bool is_part = run.first_element && *run.first_element + here.size() <= whole.size();
  const Values there = is_part ? whole.slice(*run.first_element, here.size()) : whole;
  if (here == there) {
    return std::nullopt;
  }
  const bool both_float = is_floating(here.dtype()) && is_floating(there.dtype());
  if ((here.dtype() != there.dtype() && !both_float) || here.size() != there.size()) {
    return Difference{};
  }
  const DType dtype = common_type(here.dtype(), there.dtype());
  // A real run records no sensitivity; one device is always simulated. What one device does not
  // update has no gradient that could be rounded.
  const bool own = run.sensitivity != nullptr && single.sensitivity != nullptr;
  const UpdateSensitivity* sensitivity = own ? run.sensitivity : single.sensitivity;
  const int64_t offset_of_single = is_part ? *run.first_element : 0;
  const int64_t offset = own ? run.sensitivity_begin : offset_of_single;
  const double magnitude = std::max(magnitude_of(here), magnitude_of(whole));
  const auto carried = rule.carried.find(run.name);
  const double least = carried == rule.carried.end() ? 0 : carried->second;
  for (int64_t i = 0; i < here.size(); ++i) {
    const double a = here.number(i);
    const double b = there.number(i);
    const bool same_bits = here.slice(i, 1) == there.slice(i, 1);
    const double bound =
        std::max(least, rounding_bound(rule, dtype, magnitude, sensitivity, offset + i));
    const bool differs = rule.operations == 0 || beyond_rounding(a, b, bound);
    if (!same_bits && differs && !may_have_overflowed(a, b, rule, dtype)) {
      return Difference{i, a, b, bound};
    }
  }
  return std::nullopt;
}

std::vector<std::string> fix_of_comparison(EqualityRule::Compares compares) {
  std::vector<std::string> fix{
      "this is usual where each part has enough samples to compare with; else compare"};
  switch (compares) {
    case EqualityRule::Compares::of_device:
      fix.emplace_back(
          "those of all devices: compute the loss in training_step_end (`model: "
          "{loss_in: training_step_end}`)");
      break;
    case EqualityRule::Compares::of_device_of_node:
      fix.emplace_back(
          "those of a node: compute the loss in training_step_end (`model: {loss_in: "
          "training_step_end}`);");
      fix.emplace_back("or those of all ranks: ddp, with `gather_distributed: true` of NTXentLoss");
      break;
    case EqualityRule::Compares::of_node:
      fix.emplace_back(
          "those of all ranks, which ddp can: `gather_distributed: true` of "
          "NTXentLoss, in training_step");
      break;
    default:
      fix.emplace_back(
          "those of all ranks, as one device does: `gather_distributed: true` of "
          "NTXentLoss");
  }
  return fix;
}

bool overflows(const Difference& difference, const EqualityRule& rule) {
  return difference.element >= 0 && std::isfinite(difference.there) &&
         !std::isfinite(difference.here) && rule.narrow_operations > 0 &&
         rule.narrow_dtype == DType::fp16;
}

std::vector<std::string> fix_of(const Difference& difference, const EqualityRule& rule) {
  if (overflows(difference, rule)) {
    return {
        "fp16 has no finite number above 65504, so larger gradients become infinite there: send",
        "or compute in bf16 or fp32 (such as bf16_compress_hook), or make the loss smaller"};
  }
  if (rule.splits_statistics && rule.micro_batches > 1) {
    return {"this is usual where every micro-batch has enough samples; else use fewer and",
            "larger micro-batches, or a norm without statistics of the batch (GroupNorm,",
            "LayerNorm), with which the comparison judges the rest; sync_batchnorm would not",
            "help: micro-batches of a rank follow one another"};
  }
  if (rule.splits_statistics) {
    return {
        rule.may_share_statistics
            ? "this is usual where every device has enough samples; else use sync_batchnorm, or a"
            : "this is usual where every device has enough samples; else use ddp with "
              "sync_batchnorm, or a",
        "norm without statistics of the batch (GroupNorm, LayerNorm), with which the",
        "comparison judges the rest"};
  }
  if (rule.compares != EqualityRule::Compares::all) {
    return fix_of_comparison(rule.compares);
  }
  if (rule.uneven_samples) {
    return remedy_for("LS306");
  }
  return {"look for a scale of the loss or gradient that depends on the number of ranks,",
          "for state of a batch that each rank computes for itself, and for gradients that are "
          "not exchanged"};
}

Finding finding_of(const std::string& name, const RankSet& ranks, const Difference& difference,
                   const EqualityRule& rule) {
  Finding finding = lockstep::finding_of(
      "LS306",
      rule.splits_statistics || rule.compares != EqualityRule::Compares::all ? Level::warning
                                                                             : Level::error,
      fmt::format("{} of {} differs from what one device computes from the same samples", name,
                  ranks.phrase()));
  finding.ranks = ranks;
  if (difference.element < 0) {
    finding.why.text = "the shapes differ";
  } else {
    finding.why.text =
        fmt::format("element {}: {}, but {} on one device; {}", difference.element, difference.here,
                    difference.there,
                    rule.operations == 0 ? std::string("must be equal bit for bit")
                                         : fmt::format("rounding explains {:.3g} ({} operations)",
                                                       difference.bound, rule.operations));
    finding.why.ways = {{ranks, fmt::format("{}", difference.here)}};
  }
  finding.follows.push_back(
      "the run takes a different step from the one that the large batch would give");
  if (rule.splits_statistics) {
    finding.follows.push_back(fmt::format(
        "batch norm normalises each {} by itself, one device the whole batch: that alone gives "
        "such a difference, and it can hide another",
        rule.micro_batches > 1 ? "micro-batch" : "device's part of the batch"));
  }
  if (rule.compares != EqualityRule::Compares::all) {
    finding.follows.push_back(fmt::format(
        "the loss compares the samples of each {}'s part of the batch with each other, one device "
        "those of the whole batch: that alone gives such a difference, and it can hide another",
        rule.compares == EqualityRule::Compares::of_node ? "node" : "device"));
  }
  finding.fix = fix_of(difference, rule);
  return finding;
}

}  // namespace

namespace {

double relative_error(const EqualityRule& rule, DType dtype) {
  // Parameters themselves stay wide, so what the steps' gradients err by adds up.
  const double narrow =
      rule.narrow_operations == 0
          ? 0
          : static_cast<double>(rule.steps) * gamma(rule.narrow_operations, rule.narrow_dtype);
  return 2 * (gamma(rule.operations, dtype) + narrow);
}

}  // namespace

double rounding_bound(const EqualityRule& rule, DType dtype, double magnitude) {
  // What is 0 has no rounding, also where its chain is so long that the relative error is infinite.
  const bool is_exact = rule.operations == 0 || magnitude == 0;
  return is_exact ? 0 : relative_error(rule, dtype) * magnitude;
}

double rounding_bound(const EqualityRule& rule, DType dtype, double magnitude,
                      const UpdateSensitivity* sensitivity, int64_t element) {
  const double bound = rounding_bound(rule, dtype, magnitude);
  return sensitivity == nullptr || rule.operations == 0
             ? bound
             : bound + sensitivity->distance(element, relative_error(rule, dtype));
}

std::vector<Finding> equals_single_device(std::span<const NamedValues> run,
                                          std::span<const NamedValues> single_device,
                                          const EqualityRule& rule) {
  std::map<std::string, const NamedValues*> expected;
  for (const NamedValues& values : single_device) {
    expected.try_emplace(values.name, &values);
  }
  const std::string* name = nullptr;
  std::optional<Difference> first;
  RankSet ranks;
  for (const NamedValues& values : run) {
    const auto other = expected.find(values.name);
    if (other == expected.end() || (name != nullptr && *name != values.name)) {
      continue;
    }
    if (const auto difference = difference_of(values, *other->second, rule)) {
      name = &values.name;
      first = first ? first : difference;
      ranks.add(values.rank);
    }
  }
  if (!first) {
    return {};
  }
  return {finding_of(*name, ranks, *first, rule)};
}

}  // namespace lockstep
