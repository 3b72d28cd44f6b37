#include "rehearsal/findings/compiled_graphs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/user_program/sites.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

std::string text_of(const CompiledGraph& graph) {
  std::string text;
  if (graph.forwards == 0) {
    text = "an optimizer step of its own";
  } else {
    text = fmt::format("{} of {}", graph.training ? "training" : "evaluation",
                       plural(graph.samples, "sample"));
  }
  if (graph.training && graph.forwards > 0) {
    text += graph.adds_gradients ? ", adding gradients" : "";
    text += graph.updates ? ", with an update" : ", without an update";
  }
  return text + (graph.makes_state ? ", the first one" : "");
}

/// Sizes of the batches of one loop, and how many graphs each of them needs.
struct BatchSizes {
  int64_t most = 0;
  std::vector<int64_t> smaller;
  int64_t graphs_of_smaller = 0;
};

BatchSizes sizes_of(const std::vector<CompiledGraph>& graphs, bool training) {
  BatchSizes sizes;
  for (const CompiledGraph& graph : graphs) {
    if (graph.training == training) {
      sizes.most = std::max(sizes.most, graph.samples);
    }
  }
  for (const CompiledGraph& graph : graphs) {
    if (graph.training == training && graph.forwards > 0 && graph.samples < sizes.most) {
      ++sizes.graphs_of_smaller;
      if (std::ranges::count(sizes.smaller, graph.samples) == 0) {
        sizes.smaller.push_back(graph.samples);
      }
    }
  }
  return sizes;
}

std::string graphs_text(int64_t graphs) {
  return graphs == 1 ? "1 more graph" : fmt::format("{} more graphs", graphs);
}

}  // namespace

std::vector<CompiledGraph> compiled_graphs(const OneRun& run) {
  std::vector<CompiledGraph> most;
  if (run.preparation.log == nullptr) {
    return most;
  }
  for (const RankLog& rank : run.preparation.log->ranks) {
    if (rank.compiled_graphs.size() > most.size()) {
      most = rank.compiled_graphs;
    }
  }
  return most;
}

std::string compiled_graphs_text(const OneRun& run) {
  const std::vector<CompiledGraph> graphs = compiled_graphs(run);
  if (graphs.empty()) {
    return "";
  }
  std::vector<std::string> texts;
  for (const CompiledGraph& graph : graphs) {
    texts.push_back(text_of(graph));
  }
  return fmt::format(
      "compiled {} per process by XLA, once each: {} (the time to compile is not modelled)\n",
      plural(std::ssize(graphs), "graph"), fmt::join(texts, "; "));
}

std::vector<Finding> recompilations(const OneRun& run) {
  std::vector<Finding> findings;
  const std::vector<CompiledGraph> graphs = compiled_graphs(run);
  for (const bool training : {true, false}) {
    const BatchSizes sizes = sizes_of(graphs, training);
    if (sizes.smaller.empty()) {
      continue;
    }
    Finding finding =
        finding_of("LS404", Level::warning,
                   fmt::format("XLA compiles {} for batches of {} in the {}, beside those of {}",
                               graphs_text(sizes.graphs_of_smaller),
                               fmt::format("{}", fmt::join(sizes.smaller, ", ")),
                               training ? "training" : "evaluation", plural(sizes.most, "sample")));
    const LoaderSpec* const loader = loader_of(run, training ? "train" : "validation");
    if (loader != nullptr && loader->place.line > 0) {
      finding.sites.push_back({site_of(loader->place), SiteRole::subject, "gives both sizes"});
    }
    finding.why.text = "a graph is compiled for the shapes of its tensors, and these differ";
    finding.fix = remedy_for("LS404");
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::cli
