#include "cli/render/render_finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/render/excerpt.hpp"
#include "rehearsal/text/wrapped_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t key_width = 8;

std::string head_of(const Finding& finding, const Style& style, const std::string& ignored) {
  std::string word(name_of(finding.level));
  word += finding.code.empty() ? "" : "[" + finding.code + "]";
  if (!ignored.empty()) {
    word += " (ignored: " + ignored + ")";
  }
  const std::string painted = finding.level == Level::error     ? style.error(word)
                              : finding.level == Level::warning ? style.warning(word)
                                                                : style.note(word);
  return painted + ": " + style.strong(finding.title) + "\n";
}

std::string arrow_of(const Site& site) {
  std::string text = "  --> ";
  if (site.line == 0) {
    return text + (site.description.empty() ? site.file : site.description) + "\n";
  }
  text += fmt::format("{}:{}:{}", site.file, site.line, site.column);
  std::string beside = site.at;
  if (!site.hook.empty() && site.hook != "main") {
    beside += (beside.empty() ? "" : ", ") + site.hook;
  }
  return text + (beside.empty() ? "" : fmt::format("   ({})", beside)) + "\n";
}

Mark mark_of(const FindingSite& place, const Site& site) {
  Mark mark;
  mark.line = site.line;
  mark.column = site.column;
  mark.label = place.label;
  mark.subject = place.role == SiteRole::subject || place.role == SiteRole::exception ||
                 place.role == SiteRole::cause;
  if (place.role == SiteRole::guard) {
    mark.underlined = site.condition;
  }
  return mark;
}

std::string excerpts_of(const Finding& finding, const Sites& sites, const Sources& sources,
                        const Style& style) {
  std::vector<std::pair<std::string, std::vector<Mark>>> files;
  for (const FindingSite& place : finding.sites) {
    const Site* site = sites.find(place.site);
    if (site == nullptr || site->line == 0) {
      continue;
    }
    auto file = std::find_if(files.begin(), files.end(),
                             [&](const auto& known) { return known.first == site->file; });
    if (file == files.end()) {
      files.push_back({site->file, {}});
      file = files.end() - 1;
    }
    const Mark mark = mark_of(place, *site);
    const auto same = [&](const Mark& other) {
      return other.line == mark.line && other.column == mark.column && other.label == mark.label;
    };
    if (std::none_of(file->second.begin(), file->second.end(), same)) {
      file->second.push_back(mark);
    }
  }
  std::string out;
  for (size_t index = 0; index < files.size(); ++index) {
    out += index == 0 ? "" : fmt::format("  ::: {}\n", files[index].first);
    out += excerpt(files[index].first, files[index].second, sources, style);
  }
  return out;
}

constexpr size_t text_width = 84;

// A line that begins with blanks (a piece of a scenario) stays whole.
std::vector<std::string> lines_of(const std::string& text) {
  return text.starts_with(' ') ? std::vector{text} : wrapped(text, text_width);
}

std::string rows(std::string_view key, const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    for (const std::string& line : lines_of(text)) {
      out += out.empty() ? fmt::format("   = {:<{}} {}\n", key, key_width, line)
                         : fmt::format("     {:<{}} {}\n", "", key_width, line);
    }
  }
  return out;
}

// Code keeps its lines, however long.
std::string code_rows(std::string_view key, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    out += out.empty() ? fmt::format("   = {:<{}} {}\n", key, key_width, line)
                       : fmt::format("     {:<{}} {}\n", "", key_width, line);
  }
  return out;
}

std::string row(std::string_view key, const std::string& text) { return rows(key, {text}); }

std::string place_text(const Sites& sites, SiteId id) {
  const Site* site = sites.find(id);
  if (site == nullptr) {
    return "";
  }
  if (site->line == 0) {
    return "from " + site->description;
  }
  return fmt::format("from line {}{}", site->line, site->order > 0 ? ", " + site->part : "");
}

std::string actions_of(const Finding& finding, const Sites& sites) {
  size_t width = 0;
  std::vector<std::string> texts;
  for (const RankAction& action : finding.did) {
    texts.push_back((action.call > 0 ? fmt::format("call {}: ", action.call) : "") +
                    action.operation);
    // A line that is wrapped anyway does not push the places of the others to the right.
    constexpr size_t aligned_max = 44;
    width = std::max(width, texts.back().size() <= aligned_max ? texts.back().size() : 0);
  }
  std::string out;
  for (size_t index = 0; index < texts.size(); ++index) {
    const RankAction& action = finding.did[index];
    const std::string ranks =
        action.ranks.size() == 1 ? action.ranks.phrase() : action.ranks.text();
    const std::string place = place_text(sites, action.site);
    out += place.empty() ? row(ranks, texts[index])
                         : row(ranks, fmt::format("{:<{}}   {}", texts[index], width, place));
  }
  return out;
}

// The mark below the guard says already what went which way.
bool repeats_mark(const Finding& finding, const Sites& sites) {
  const Site* guard = sites.find(finding.why.site);
  return guard != nullptr &&
         std::any_of(finding.sites.begin(), finding.sites.end(), [&](const FindingSite& site) {
           return site.role == SiteRole::guard && site.site == finding.why.site &&
                  finding.why.text == fmt::format("`{}` is {}", guard->condition, site.label);
         });
}

std::string why_of(const Finding& finding, const Sites& sites) {
  const Why& why = finding.why;
  std::vector<std::string> lines;
  if (!why.text.empty() && !repeats_mark(finding, sites)) {
    lines.push_back(why.text);
  }
  const auto marks_it = [&](const FindingSite& site) {
    return site.role == SiteRole::guard && site.site == why.site;
  };
  const bool marked = std::any_of(finding.sites.begin(), finding.sites.end(), marks_it);
  if (!marked || sites.find(why.site) == nullptr) {
    for (const Way& way : why.ways) {
      lines.push_back(fmt::format("{}: {}", way.ranks.phrase(), way.value));
    }
  }
  return rows("why", lines);
}

}  // namespace

std::string render_finding(const Finding& finding, const Sites& sites, const Sources& sources,
                           const Style& style, const std::string& ignored) {
  std::string out = head_of(finding, style, ignored);
  const Site* const place = sites.find(finding.place);
  if (const Site* site = place != nullptr ? place : sites.find(finding.site())) {
    out += arrow_of(*site);
  }
  out += excerpts_of(finding, sites, sources, style);
  if (!finding.when.empty()) {
    out += row("when", finding.when);
  }
  out += actions_of(finding, sites);
  out += why_of(finding, sites);
  out += rows("follows", finding.follows);
  if (!finding.smallest.empty()) {
    out += row("minimal", "reproduction: " + finding.smallest);
  }
  out += rows("fix", finding.fix);
  out += code_rows("python", finding.python);
  if (!finding.more.empty() && !finding.code.empty()) {
    out += row("more", finding.more);
  }
  return out;
}

std::string render_problems(const std::vector<Problem>& problems, const Sources& sources,
                            const Style& style) {
  std::string out;
  for (const Problem& problem : problems) {
    const SourcePlace& place = problem.place;
    if (problem.kind == Problem::Kind::refused || problem.kind == Problem::Kind::warning) {
      continue;  // reported as a finding
    }
    const std::string where =
        place.line > 0 ? fmt::format("{}:{}:{}", place.file, place.line, place.column) : place.file;
    if (problem.kind == Problem::Kind::note) {
      out += fmt::format("{} {} {}{}\n", style.note("note"), where, problem.message,
                         problem.remedy.empty() ? "" : "; " + problem.remedy);
      continue;
    }
    const bool invalid = problem.kind == Problem::Kind::invalid;
    out += fmt::format("{}: {}\n", style.error(invalid ? "error" : "not supported yet"),
                       style.strong(problem.message));
    out += where.empty() ? "" : fmt::format("  --> {}\n", where);
    if (place.line > 0) {
      out += excerpt(place.file, {{place.line, place.column, "", "", true}}, sources, style);
    }
    if (!problem.remedy.empty()) {
      out += fmt::format("   = {}\n", problem.remedy);
    }
    out += "\n";
  }
  return out;
}

}  // namespace lockstep::cli
