#include "cli/render/timeline/span_text.hpp"

#include <fmt/format.h>

#include "cli/render/timeline/placement.hpp"
#include "cli/render/timeline/trace_file.hpp"
#include "model/core/queue_name.hpp"
#include "model/network/network.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"
#include "properties/diagnosis/calls.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

using Kind = Span::Kind;

bool is_at(const Row& row, std::string_view site) { return row.site == site_id(site); }

// What a layer's work is called; empty: the operation is none.
std::string_view pass_of(const Row& row) {
  const bool of_layer = row.kind == OpKind::compute &&
                        (row.kernel == Kernel::timed || row.kernel == Kernel::layer_forward ||
                         row.kernel == Kernel::layer_backward ||
                         row.kernel == Kernel::loss_forward || row.kernel == Kernel::loss_backward);
  if (!of_layer) {
    return "";
  }
  if (is_at(row, replica_sites::recompute)) {
    return "recompute";
  }
  if (is_at(row, replica_sites::layer_forward) || is_at(row, replica_sites::loss_forward)) {
    return "forward";
  }
  const bool backward =
      is_at(row, replica_sites::layer_backward) || is_at(row, replica_sites::loss_backward);
  return backward ? "backward" : "";
}

bool is_barrier(const Journal& journal, const Row& row) {
  return called_kind(journal, row) == OpKind::barrier;
}

void add(std::string& arguments, const std::string& field) {
  arguments += (arguments.empty() || field.empty() ? "" : ",") + field;
}

}  // namespace

SpanText::SpanText(const Rehearsal& rehearsal)
    : journal_(*rehearsal.run.result.journal),
      network_(rehearsal.run.preparation.options.network),
      groups_(journal_) {}

std::string SpanText::layer_name(const Row& row) const {
  if (network_ == nullptr || row.tag < 0) {
    return "";
  }
  const auto index = static_cast<size_t>(row.tag);
  if (is_at(row, replica_sites::loss_forward) || is_at(row, replica_sites::loss_backward)) {
    const bool known = network_->modules.empty() || index < network_->modules.size();
    return known ? std::string(name_of(network_->loss_of(row.tag).kind)) : "";
  }
  return index < network_->layers.size() ? network_->layers[index].name : "";
}

std::string SpanText::operation_name(const Row& row) const {
  if (row.kind != OpKind::compute) {
    return std::string(name_of(called_kind(journal_, row)));
  }
  const std::string_view pass = pass_of(row);
  const std::string layer = pass.empty() ? "" : layer_name(row);
  return layer.empty() ? std::string(name_of(row.kernel)) : fmt::format("{} {}", pass, layer);
}

// A mark in a stream has passed when everything before it has.
std::string SpanText::wait_name(const Row& row) const {
  if (row.sequence == 0) {
    return "wait";
  }
  return "wait for " +
         (row.kind == OpKind::event ? track_name(row.stream.value, journal_) : operation_name(row));
}

std::string SpanText::name(const Span& span) const {
  const Site* site = journal_.sites.find(span.row.site);
  switch (span.kind) {
    case Kind::step: return fmt::format("step {}", span.number);
    case Kind::forward: return "forward";
    case Kind::backward: return "backward";
    case Kind::optimizer: return "optimizer";
    case Kind::micro_batch: return text_of(*marked_action(span.row.site, span.row.tag));
    case Kind::hook: return site->hook;
    case Kind::statement: return site->description;
    case Kind::wait: return wait_name(span.row);
    case Kind::repeated:
      return span.number == 0  // batches of an evaluation, or micro-batches
                 ? "not simulated: the same again"
                 : fmt::format("{} not simulated: the same again", plural(span.number, "step"));
    case Kind::operation: break;
  }
  return operation_name(span.row);
}

std::string SpanText::category(const Span& span) const {
  switch (span.kind) {
    case Kind::step: return "step";
    case Kind::forward: return "forward";
    case Kind::backward: return "backward";
    case Kind::optimizer: return "optimizer";
    case Kind::micro_batch: return "micro_batch";
    case Kind::hook: return "hook";
    case Kind::statement: return "statement";
    case Kind::wait: return "wait";
    case Kind::repeated: return "repeated";
    case Kind::operation: break;
  }
  return std::string(name_of(span.row.kind));
}

std::string SpanText::site_arguments(SiteId id) const {
  const Site* site = journal_.sites.find(id);
  if (site == nullptr) {
    return "";
  }
  std::string arguments = "\"site\":" + quoted(journal_.sites.place(id));
  return arguments + (site->at.empty() ? "" : ",\"at\":" + quoted(site->at));
}

// One id for a call of all ranks: what has the same `collective` belongs together.
std::string SpanText::communication_arguments(const Span& span) const {
  const Row& row = span.row;
  std::string arguments;
  if (row.kind != OpKind::new_group && !is_barrier(journal_, row)) {
    arguments = fmt::format(R"("bytes":{},"dtype":"{}","elements":{})", row.bytes,
                            name_of(row.dtype), row.bytes / size_of(row.dtype));
    if (reduces(row.kind)) {
      add(arguments, fmt::format(R"("reduction":"{}")", name_of(row.reduction)));
    }
  }
  if (has_root(row.kind)) {
    add(arguments, fmt::format(R"("root":{})", row.peer));
  } else if (is_point_to_point(row.kind)) {
    add(arguments, fmt::format(R"("peer":{},"tag":{})", row.peer, row.tag));
  }
  if (span.number > 0) {
    const std::string& group = groups_[span.communicator];
    add(arguments, fmt::format(R"("group":{},"call":{},"collective":{})", quoted(group),
                               span.number, quoted(fmt::format("{} #{}", group, span.number))));
  }
  return arguments;
}

std::string SpanText::arguments(const Span& span) const {
  const Row& row = span.row;
  std::string arguments;
  if (span.kind == Kind::operation && is_communication(row.kind)) {
    arguments = communication_arguments(span);
  } else if (span.kind == Kind::operation && row.kind == OpKind::copy) {
    arguments = fmt::format("\"bytes\":{}", row.bytes);
  } else if (span.kind == Kind::operation && row.kind == OpKind::compute) {
    // The row of a kernel keeps its work, which is a time where the scenario says how long it runs.
    arguments =
        row.kernel != Kernel::timed && row.bytes > 0 ? fmt::format("\"flops\":{}", row.bytes) : "";
  }
  if (span.kind == Kind::micro_batch) {
    const PipelineAction action = *marked_action(row.site, row.tag);
    arguments = fmt::format(R"("stage":{},"micro_batch":{})", action.stage, action.micro_batch);
  }
  if (span.parts > 1) {
    add(arguments, fmt::format("\"parts\":{}", span.parts));
  }
  if (span.kind == Kind::statement || span.kind == Kind::wait || span.kind == Kind::operation) {
    add(arguments, site_arguments(row.site));
  }
  if (span.finish == never) {
    add(arguments, "\"hangs\":true");
  }
  if (span.unfinished) {
    add(arguments, "\"unfinished\":true");
  }
  if (span.outcome != Outcome::ok && span.outcome != Outcome::pending) {
    add(arguments, fmt::format(R"("outcome":"{}")", name_of(span.outcome)));
  }
  return arguments;
}

std::string track_name(int32_t track, const Journal& journal) {
  const int32_t overflow = track / TrackPlacement::overflow_step;
  const int32_t own = track % TrackPlacement::overflow_step;
  const std::string beside = overflow == 0 ? "" : fmt::format(" ({})", overflow + 1);
  if (own >= host_tracks) {
    return fmt::format("host thread {}{}", own - host_tracks, beside);
  }
  const StreamId stream{static_cast<uint16_t>(own)};
  const auto named = journal.stream_names.find(stream.queue());
  std::string name = gloo_queue_name(stream.queue());
  switch (stream.queue()) {
    case queue::compute: name = "compute"; break;
    case queue::communication: name = "communication"; break;
    case queue::copy: name = "copy"; break;
    case queue::data: name = "data"; break;
    case queue::read: name = "reading"; break;
    case queue::write: name = "writing"; break;
    case queue::post_backward: name = "post-backward"; break;
    default: break;
  }
  if (named != journal.stream_names.end()) {
    name = "stream " + named->second;
  } else if (name.empty()) {
    name = fmt::format("stream {}", stream.queue());
  }
  if (stream.device() == host_device) {
    return name + " on the host" + beside;
  }
  if (stream.device() == drive_device) {
    return name + " the drive" + beside;
  }
  return (stream.device().value == 0
              ? name
              : fmt::format("{} of device {}", name, stream.device().value)) +
         beside;
}

}  // namespace lockstep::cli
