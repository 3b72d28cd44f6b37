// From what Lightning's arguments ask for to a hook, and what is to be said of it.
#include <fmt/core.h>

#include <algorithm>

#include "model/strategy/exchange/hooks/hook_arguments.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/exchange/hooks/plain_hooks.hpp"

namespace lockstep {

namespace {

using Kind = HookOptions::Kind;

/// A hook without the state that it needs: it raises when the first bucket is full.
class StatelessHook final : public BucketHook {
 public:
  Ticket start(Rank&, const FullBucket&) override {
    throw ProgramException(site_id(hook_sites::prepare),
                           "AttributeError: 'NoneType' object has no attribute 'process_group': "
                           "the hook needs a ddp_comm_state");
  }
};

std::unique_ptr<BucketHook> bare_hook(const HookOptions& options) {
  switch (options.kind) {
    case Kind::none: return nullptr;
    case Kind::all_reduce: return std::make_unique<AllReduceHook>();
    case Kind::cast:
      return std::make_unique<CastingHook>(options.narrow, std::make_unique<AllReduceHook>());
    case Kind::noop: return std::make_unique<NoopHook>();
    case Kind::power_sgd:
    case Kind::post_local_sgd: break;
  }
  if (!options.has_state) {
    return std::make_unique<StatelessHook>();
  }
  if (options.kind == Kind::power_sgd) {
    return std::make_unique<PowerSgdHook>(options.power_sgd);
  }
  return std::make_unique<PostLocalSgdHook>(options.post_local_sgd);
}

std::optional<DType> sent_in(const HookOptions& options) {
  return options.wrapper              ? options.wrapper
         : options.kind == Kind::cast ? std::optional(options.narrow)
                                      : std::nullopt;
}

}  // namespace

std::unique_ptr<BucketHook> make_bucket_hook(const HookOptions& options) {
  std::unique_ptr<BucketHook> hook = bare_hook(options);
  if (hook == nullptr || !options.wrapper) {
    return hook;
  }
  return std::make_unique<CastingHook>(*options.wrapper, std::move(hook));
}

std::vector<std::pair<std::string, std::string>> hooks_without_effect(
    const StrategyArguments& arguments, bool on_gpu) {
  std::vector<std::pair<std::string, std::string>> told;
  const HookOptions options = hook_options_from(arguments);
  const bool has_hook = options.kind != Kind::none;
  if (has_hook && !on_gpu) {
    told.emplace_back("ddp_comm_hook",
                      "Lightning registers communication hooks on GPUs alone: here gradients are "
                      "averaged as without it");
  }
  if (options.wrapper && !has_hook) {
    told.emplace_back("ddp_comm_wrapper", "without a ddp_comm_hook there is nothing to wrap");
  }
  const bool has_state = std::ranges::any_of(arguments.all(), [&arguments](const auto& argument) {
    return arguments.has(argument.first) &&
           (argument.first == "ddp_comm_state" || argument.first.starts_with("ddp_comm_state."));
  });
  if (has_state && !has_hook && !options.averaging.averages()) {
    told.emplace_back("ddp_comm_state", "without a ddp_comm_hook nothing reads the state");
  }
  if (arguments.has("model_averaging_period") && !options.averaging.averages()) {
    told.emplace_back(
        "model_averaging_period",
        "Lightning averages models where ddp_comm_state is a PostLocalSGDState alone");
  }
  if (options.averaging.period == 1 && !options.averaging.outer) {
    told.emplace_back(
        "model_averaging_period",
        "with a period of 1 the model is sent in every step, which costs no less than "
        "its gradients do");
  }
  return told;
}

std::vector<KnownDifference> differences_of(const HookOptions& options) {
  std::vector<KnownDifference> known;
  if (options.kind == Kind::none) {
    return known;
  }
  if (const std::optional<DType> narrow = sent_in(options)) {
    const bool is_half = *narrow == DType::fp16;
    known.push_back({fmt::format("gradients travel in {}{}", name_of(*narrow),
                                 is_half ? ": what is beyond 65504 becomes infinite, what is below "
                                           "6e-8 becomes 0, before and after the division by the "
                                           "number of ranks"
                                         : ": each is rounded to 8 bits"),
                     is_half ? "use bf16_compress_hook, which has the range of fp32, or clip or "
                               "scale what makes such gradients"
                             : ""});
  }
  if (options.kind == Kind::power_sgd) {
    known.push_back({fmt::format("{} sends approximations of the gradients", options.name), "",
                     DifferenceKind::by_design});
    if (options.power_sgd.orthogonalization_epsilon == 0) {
      known.push_back(
          {"a gradient matrix of zeros alone becomes NaN: its columns are divided by "
           "their norm",
           "give PowerSGDState an orthogonalization_epsilon, such as 1e-8"});
    }
  }
  if (options.kind == Kind::noop) {
    known.push_back(
        {"noop_hook leaves every rank its own gradients, undivided",
         options.averaging.averages()
             ? ""
             : "use another hook, or average the models: a PostLocalSGDState as "
               "ddp_comm_state and a model_averaging_period",
         options.averaging.averages() ? DifferenceKind::by_design : DifferenceKind::of_replicas});
  }
  return known;
}

}  // namespace lockstep
