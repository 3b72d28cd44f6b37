#include "properties/diagnosis/remedy.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

namespace {

using Lines = std::vector<std::string>;

// An expression as a value inside of braces.
std::string in_flow(const std::string& expression) {
  return expression.find_first_of(",[]{}#:\"'") == std::string::npos ? expression
                                                                     : "\"" + expression + "\"";
}

std::string deciding(const RemedyContext& context) {
  return fmt::format("  - {{reduce_boolean_decision: {{value: {}, all: {}, as: decided}}}}",
                     context.condition.empty() ? "condition" : in_flow(context.condition),
                     context.steps_if_true);
}

Lines for_missing_step(const RemedyContext& context) {
  return {fmt::format("every rank must take the step: the strategy calls {0} in it, and {0} is a "
                      "collective of all ranks;",
                      context.operation),
          "whether to skip one is decided for all ranks, before the branch:", deciding(context)};
}

// Ranks that ran other statements than the rest, or with other arguments.
Lines for_parted(const RemedyContext& context) {
  const auto holds = [&context](std::string_view statement) {
    return std::ranges::find(context.parted, statement) != context.parted.end();
  };
  if (holds("no_sync")) {
    return {
        fmt::format("all ranks must be inside of no_sync for the same micro-batches: a backward "
                    "outside of it calls {},",
                    context.operation),
        "one inside of it does not; decide by the number of the micro-batch, or once for all "
        "ranks:",
        deciding(context)};
  }
  if (holds("optimizer_step") || holds("optimizer_closure")) {
    return for_missing_step(context);
  }
  if (holds("forward")) {
    return {fmt::format("all ranks must run the same modules in the same order: the strategy calls "
                        "{} for each of them;",
                        context.operation),
            "where a rank has no use for a module, let it run all the same and multiply by 0"};
  }
  return {
      fmt::format("every rank must run the same {0}: the strategy calls {1} in it, and {1} is a "
                  "collective of all ranks",
                  context.parted.front(), context.operation)};
}

Lines for_calls(std::string_view code, const RemedyContext& context) {
  if (context.stops) {
    return {"decide once for all ranks (or from a value logged with sync_dist: true), then stop:",
            deciding(context), "  - {should_stop: decided}"};
  }
  if (!context.batches.empty()) {
    const std::string key = context.batches == "training"     ? "train"
                            : context.batches == "validation" ? "val"
                                                              : context.batches;
    return {"give every rank the same number of batches: a DistributedSampler pads or drops;",
            fmt::format("or cut all ranks to the smallest number: trainer.limit_{}_batches", key)};
  }
  if (context.statement.starts_with("optimizer_")) {
    return for_missing_step(context);
  }
  if (!context.statement.empty()) {
    return {fmt::format("every rank must run this {0}: the strategy calls {1} in it, and {1} is a "
                        "collective of all ranks;",
                        context.statement, context.operation),
            "guard only what needs one rank (printing, logging, writing a file)"};
  }
  if (!context.parted.empty() && code != "LS109") {
    return for_parted(context);
  }
  const std::string operation = context.operation.empty() ? "the call" : context.operation;
  if (code == "LS101") {
    return {
        fmt::format("every rank must call {}; guard only what needs one rank "
                    "(printing, logging, writing a file)",
                    operation)};
  }
  if (code == "LS102") {
    return {fmt::format("every rank must call {} equally often: give all ranks the same number of "
                        "batches or items,",
                        operation),
            "or agree on the end before each turn (without a trainer: all_reduce a flag by min):",
            "  - {reduce_boolean_decision: {value: more, all: true, as: all_have_more}}"};
  }
  if (code == "LS103") {
    return {"call them in the same order on every rank; iterate over sorted keys, not over a set"};
  }
  if (code == "LS104") {
    return {
        fmt::format("give {} the same size, dtype, root and reduction on every rank;", operation),
        "for data of uneven length gather the lengths first, pad to the longest, cut afterwards"};
  }
  if (code == "LS105") {
    return {
        "every rank of the parent group calls new_group, with the same list of ranks, in the "
        "same order,",
        "whether it becomes a member or not"};
  }
  return {"decide once for all ranks, then branch on the result:", deciding(context),
          "  - {if: decided, then: [..]}"};
}

Lines for_waiting(std::string_view code) {
  if (code == "LS106") {
    return {"call the operations of the two groups in the same order on every rank,",
            "and do not let the host wait between them on some ranks only"};
  }
  if (code == "LS107") {
    return {"let one side send while the other receives, or issue each pair as one:",
            "  - batch_isend_irecv: [{send: {..}}, {recv: {..}}]"};
  }
  return {"do not rely on a send that returns before it is received; issue each pair as one:",
          "  - batch_isend_irecv: [{send: {..}}, {recv: {..}}]"};
}

Lines for_memory_of_streams(std::string_view code) {
  if (code == "LS201") {
    return {"wait for the operation that writes the data before reading it:", "  - wait: NAME"};
  }
  if (code == "LS202") {
    return {
        "keep the buffer until its last user has finished: wait for it before the buffer is "
        "overwritten or released"};
  }
  return {"order the two writers: put them on one stream, or let one wait for the other:",
          "  - wait_stream: {stream: FIRST, on: SECOND}"};
}

}  // namespace

std::vector<std::string> remedy_for(std::string_view code, const RemedyContext& context) {
  if (context.by_signal) {
    return {
        "signal all ranks of a job, never only one; and as a rank may be anywhere then, "
        "count on checkpoints",
        "at intervals and a restart, not on this end"};
  }
  if (code == "LS109" || (code >= "LS101" && code <= "LS105")) {
    return for_calls(code, context);
  }
  if (code >= "LS106" && code <= "LS108") {
    return for_waiting(code);
  }
  if (code >= "LS201" && code <= "LS203") {
    return for_memory_of_streams(code);
  }
  if (code == "LS304") {
    return {"evaluate without padding (`sampler: unrepeated`), or drop repeated samples by index"};
  }
  if (code == "LS303") {
    return {
        "log the same keys in the same order on every rank: use `if` for the value, not for the "
        "log"};
  }
  if (code == "LS305" && !context.condition.empty()) {
    return {
        "let every rank change its weights alike: decide once for all ranks, before the branch:",
        deciding(context)};
  }
  if (code == "LS305") {
    return {
        "start all ranks from the same values, and change them only by values that all ranks "
        "share"};
  }
  if (code == "LS306") {
    return {"weight each rank by its number of samples, or give every rank equally many"};
  }
  if (code == "LS401") {
    return {"lower batch_size, shard parameters or optimizer state, or recompute activations"};
  }
  if (code == "LS402") {
    return {"raise the timeout of the group, or let the slow work run on all ranks at once"};
  }
  if (code == "LS404") {
    return {
        "write drop_last: true, or choose a batch_size that divides the samples of each rank, so "
        "that all batches have one size"};
  }
  return {};
}

// One rank that leaves must make all leave, so a rank that may go on has to ask for all.
std::vector<std::string> remedy_for_return(const GuardedReturn& leaves) {
  const std::string branch =
      fmt::format("`{}` {}", leaves.condition, leaves.leaves_if_true ? "holds" : "does not hold");
  if (leaves.is_refused) {
    return {
        fmt::format("let every rank come to the backward: where {}, multiply the loss by 0 instead "
                    "of leaving;",
                    branch),
        "Lightning from 2.3 on raises where training_step returns None, also if all ranks do"};
  }
  return {
      fmt::format(
          "let every rank go through the whole hook, also where {} (a loss times 0 is one);",
          branch),
      "or decide once for all ranks, before the branch:",
      fmt::format("  - {{reduce_boolean_decision: {{value: {}, {}}}}}", in_flow(leaves.condition),
                  leaves.leaves_if_true ? "all: false, as: skips" : "all: true, as: goes_on"),
      leaves.leaves_if_true ? "  - {if: skips, then: [return]}"
                            : "  - {if: goes_on, then: [..], else: [return]}"};
}

}  // namespace lockstep
