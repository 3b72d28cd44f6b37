#include "cli/render/render_strategies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/render/answer_lines.hpp"
#include "cli/render/case_verdict.hpp"
#include "properties/finding.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/outcome.hpp"
#include "rehearsal/run/samples_per_step.hpp"
#include "rehearsal/text/number_text.hpp"
#include "rehearsal/text/wrapped_text.hpp"

namespace lockstep::cli {

namespace {

struct Columns {
  std::string name{}, samples{}, throughput{}, step_time{}, memory{}, host{}, sent{}, cost{};
  std::string verdict{};  ///< without figures it stands in their place

  bool has_figures() const { return !memory.empty(); }
};

constexpr Columns titles_of_run() {
  return {"strategy",      "samples",        "samples/s",     "step time", "memory per GPU",
          "host per rank", "sent in a step", "cost, million", ""};
}

// Of the rank that sends most. A server has no steps: what it sends while rank 0 takes one.
Bytes sent_in_a_step(const Rehearsal& rehearsal) {
  Bytes most{};
  for (const RankResults& rank : rehearsal.results.ranks) {
    Bytes bytes{};
    for (const TransferCount& transfer : rank.transfers) {
      bytes += Bytes(bytes_sent(transfer));
    }
    bytes = rank.mean_sent ? rank.mean_sent->bytes : bytes;
    const int64_t steps = rehearsal.results.prediction.steps;
    if (!rank.takes_steps && steps > 0) {
      bytes = Bytes(bytes.count() / steps);
    }
    most = std::max(most, bytes);
  }
  return most;
}

// The first problem or error, without a second sentence.
std::string first_reason(const Rehearsal& rehearsal) {
  for (const Finding& finding : rehearsal.findings) {
    if (finding.level == Level::error) {
      return finding.title;
    }
  }
  for (const Problem& problem : rehearsal.problems) {
    if (problem.kind == Problem::Kind::invalid || problem.kind == Problem::Kind::unsupported ||
        problem.kind == Problem::Kind::refused) {
      return problem.message;
    }
  }
  return rehearsal.undecided;
}

std::string with_reason(const Rehearsal& rehearsal) {
  const std::string verdict = verdict_on(rehearsal);
  const Outcome outcome = outcome_of(rehearsal);
  const std::string reason = outcome == Outcome::out_of_memory ? "" : first_reason(rehearsal);
  return verdict.empty() || reason.empty() ? verdict : verdict + ": " + reason;
}

// "LS306 x 2, LS305", errors and warnings; what a run on one device would give differently is
// LS306.
std::string found_in(const Rehearsal& rehearsal) {
  std::vector<std::string> codes;
  for (const Finding& finding : rehearsal.findings) {
    const std::string code = finding.code.empty() ? "an error" : finding.code;
    if (finding.level != Level::note && std::ranges::find(codes, code) == codes.end()) {
      codes.push_back(code);
    }
  }
  return codes.empty() ? "no findings" : fmt::format("{}", fmt::join(codes, ", "));
}

std::string cost_of_a_million(const Rehearsal& rehearsal) {
  const std::optional<Cost> cost = cost_of(rehearsal);
  return cost && cost->per_million_samples ? money_text(*cost->per_million_samples, cost->currency)
                                           : "-";
}

Columns columns_of(const UnderStrategy& row, bool verified) {
  const Rehearsal& rehearsal = *row.rehearsal;
  const std::string without = with_reason(rehearsal);
  const RankResults* rank = fullest_rank(rehearsal);
  if (!without.empty() || rank == nullptr) {
    Columns verdict{row.name};
    verdict.verdict = without.empty() ? "nothing is trained" : without;
    return verdict;
  }
  const Prediction& prediction = rehearsal.results.prediction;
  const std::optional<int64_t> samples = samples_per_step(rehearsal.run, rehearsal.results);
  return {row.name,
          samples ? std::to_string(*samples) : "-",
          prediction.samples_per_s ? number_text(*prediction.samples_per_s) : "-",
          prediction.usual_step_time() ? time_text(prediction.usual_step_time()->count()) : "-",
          bytes_text(rank->memory.peak.count()),
          bytes_text(most_on_host(rehearsal).count()),
          bytes_text(sent_in_a_step(rehearsal).count()),
          cost_of_a_million(rehearsal),
          verified ? found_in(rehearsal) : ""};
}

// As wide as the figures of other lines, and below each other where it is longer.
std::string in_place_of_figures(const Columns& line, size_t name_width, size_t line_width) {
  const size_t indent = name_width + 4;
  std::string text = fmt::format("  {:<{}}  ", line.name, name_width);
  bool is_first = true;
  for (const std::string& words : wrapped(line.verdict, line_width - indent)) {
    text += (is_first ? "" : std::string(indent, ' ')) + words + "\n";
    is_first = false;
  }
  return text;
}

std::string below_the_table(const std::string& whole, size_t line_width) {
  std::string text, indent = "  ";
  for (const std::string& words : wrapped(whole, line_width - 4)) {
    text += indent + words + "\n";
    indent = "    ";
  }
  return text;
}

// Each once, whatever the number of rows.
std::string launches_of(const std::vector<UnderStrategy>& rows, size_t line_width) {
  std::vector<std::string> seen;
  std::string text;
  for (const UnderStrategy& row : rows) {
    if (!row.launch.empty() && std::ranges::find(seen, row.launch) == seen.end()) {
      seen.push_back(row.launch);
      text += below_the_table(row.launch, line_width);
    }
  }
  return text;
}

// Where one step does not show it.
std::string note_of_mean(const UnderStrategy& row) {
  const Results& results = row.rehearsal->results;
  const int64_t of_cycle = results.prediction.steps_of_cycle;
  if (of_cycle == 1 || results.ranks.empty()) {
    return "";
  }
  const std::optional<MeanSent>& mean = results.ranks.front().mean_sent;
  if (!mean) {
    return "figures of one step, though not every step exchanges the same: a mean needs more steps";
  }
  return of_cycle == 0
             ? fmt::format("sent in a step on average over the {} in which its thread exchanges",
                           plural(mean->steps, "step"))
             : fmt::format(
                   "sent in a step on average over {}, as not every step exchanges the same",
                   plural(mean->steps, "step"));
}

// Rows of one note together, as wide as the table.
std::string notes_of(const std::vector<UnderStrategy>& rows, const std::vector<Columns>& lines,
                     size_t line_width) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_note;
  const auto add = [&by_note](const std::string& name, const std::string& note) {
    if (note.empty()) {
      return;
    }
    auto found = std::ranges::find(by_note, note, &decltype(by_note)::value_type::first);
    if (found == by_note.end()) {
      found = by_note.insert(found, {note, {}});
    }
    found->second.push_back(name);
  };
  for (size_t index = 0; index < rows.size(); ++index) {
    const UnderStrategy& row = rows[index];
    for (const std::string& note : row.notes) {
      add(row.name, note);
    }
    add(row.name, lines[index + 1].has_figures() ? note_of_mean(row) : "");
  }
  std::string text;
  for (const auto& [note, names] : by_note) {
    text += below_the_table(fmt::format("{}: {}", fmt::join(names, "; "), note), line_width);
  }
  return text;
}

}  // namespace

std::string render_strategies(const std::vector<UnderStrategy>& rows, bool verified,
                              const Style& style) {
  std::vector<Columns> lines{titles_of_run()};
  lines.front().verdict = verified ? "found" : "";
  for (const UnderStrategy& row : rows) {
    lines.push_back(columns_of(row, verified));
  }
  const auto width = [&](std::string Columns::*column) {
    size_t widest = 0;
    for (const Columns& line : lines) {
      widest = std::max(widest, (line.*column).size());
    }
    return widest;
  };
  const size_t name = width(&Columns::name);
  const size_t samples = width(&Columns::samples);
  const size_t throughput = width(&Columns::throughput);
  const size_t step = width(&Columns::step_time);
  const size_t memory = width(&Columns::memory);
  const size_t host = width(&Columns::host);
  const size_t sent = width(&Columns::sent);
  const size_t cost = width(&Columns::cost);
  const bool has_cost = std::any_of(lines.begin() + 1, lines.end(), [](const Columns& line) {
    return line.has_figures() && line.cost != "-";
  });
  std::string text = style.strong("The same training under each strategy") + "\n";
  size_t line_width = 0;
  for (const Columns& line : lines) {
    std::string left =
        fmt::format("  {:<{}}  {:>{}}  {:>{}}  {:>{}}  {:>{}}  {:>{}}  {:>{}}", line.name, name,
                    line.samples, samples, line.throughput, throughput, line.step_time, step,
                    line.memory, memory, line.host, host, line.sent, sent);
    left += has_cost ? fmt::format("  {:>{}}", line.cost, cost) : "";
    line_width = left.size();
    if (!line.has_figures()) {
      text += in_place_of_figures(line, name, left.size());
      continue;
    }
    text += line.verdict.empty() ? left + "\n" : left + "  " + line.verdict + "\n";
  }
  text += "  samples: of a step\n";
  text += "  sent in a step: by the rank that sends most, where collectives go round a ring\n";
  text += has_cost ? "  cost, million: of a million samples at this throughput\n" : "";
  text += launches_of(rows, line_width);
  text += notes_of(rows, lines, line_width);
  const auto differs = [&lines](const Columns& line) {
    return line.has_figures() && line.samples != "-" && line.samples != lines[1].samples;
  };
  if (lines.size() > 2 && std::any_of(lines.begin() + 2, lines.end(), differs)) {
    text += not_convergence;
  }
  return text;
}

}  // namespace lockstep::cli
