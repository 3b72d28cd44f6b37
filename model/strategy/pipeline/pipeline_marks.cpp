#include "model/strategy/pipeline/pipeline_marks.hpp"

#include <fmt/core.h>

#include <array>

#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

namespace {

constexpr std::array works{PipelineWork::forward, PipelineWork::backward,
                           PipelineWork::input_gradient, PipelineWork::weight_gradient};
constexpr int32_t micro_batch_bits = 18;
constexpr int32_t most_micro_batches = 1 << micro_batch_bits;
constexpr int32_t most_stages = 1 << (31 - micro_batch_bits);

std::string_view site_of(PipelineWork work) {
  switch (work) {
    case PipelineWork::forward: return pipeline_sites::forward;
    case PipelineWork::backward: return pipeline_sites::backward;
    case PipelineWork::input_gradient: return pipeline_sites::input_gradient;
    case PipelineWork::weight_gradient: return pipeline_sites::weight_gradient;
  }
  return {};
}

}  // namespace

// Larger pipelines go without names.
void mark_action(Rank& rank, StreamId on, const PipelineAction& action) {
  if (action.stage >= most_stages || action.micro_batch >= most_micro_batches) {
    return;
  }
  Op mark;
  mark.kind = OpKind::event;
  mark.stream = on;
  mark.site = site_id(site_of(action.work));
  mark.tag = (action.stage << micro_batch_bits) + action.micro_batch;
  rank.port().submit({&mark, 1});
}

std::optional<PipelineAction> marked_action(SiteId site, int32_t tag) {
  for (const PipelineWork work : works) {
    if (site == site_id(site_of(work))) {
      return PipelineAction{work, tag >> micro_batch_bits, tag % most_micro_batches};
    }
  }
  return std::nullopt;
}

std::string_view name_of(PipelineWork work) {
  switch (work) {
    case PipelineWork::forward: return "forward";
    case PipelineWork::backward: return "backward";
    case PipelineWork::input_gradient: return "input gradient";
    case PipelineWork::weight_gradient: return "weight gradient";
  }
  return {};
}

std::string text_of(const PipelineAction& action) {
  return fmt::format("stage {} {} of micro-batch {}", action.stage, name_of(action.work),
                     action.micro_batch);
}

}  // namespace lockstep
