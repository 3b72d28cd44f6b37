// Fits the correction of sim/cost/collective_correction.cpp to the tables of data/nccl-tests and
// says how wrong predictions are. Each source is judged by terms that were fitted without it.
//
//   build/bin/collective_fit > fit.md
//
// The loss is the sum over sources of the mean |log(predicted / measured)| of their tables, times
// 20, and for each term the square of its distance from what is usual, in spreads. It is minimized
// by coordinate descent with shrinking steps, so the same tables give the same values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "io/table/collective_table.hpp"
#include "rehearsal/collective/collective_prediction.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t large_from_bytes = 65'536;
// Nothing of it is modelled.
constexpr std::string_view shared_gpu = "shared-gpu";

struct MeasuredTable {
  std::string name;
  std::string source;
  OpKind kind = OpKind::all_reduce;
  sim::NcclPricing pricing;
  std::vector<CollectiveMeasurement> rows;
};

OpKind kind_named(const std::string& name) {
  for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::all_to_all}) {
    if (name_of(kind) == name) {
      return kind;
    }
  }
  throw std::runtime_error("tables.csv: unknown collective " + name);
}

MeasuredTable load_table(const std::string& folder, const std::string& line) {
  std::istringstream stream(line);
  std::string name;
  std::string kind;
  std::string source;
  std::string system;
  std::string gpus;
  std::getline(stream, name, ',');
  std::getline(stream, kind, ',');
  std::getline(stream, source, ',');
  std::getline(stream, system, ',');
  std::getline(stream, gpus);
  CollectiveQuestion question;
  question.kind = kind_named(kind);
  question.cluster = folder + "/systems.yaml:" + system;
  question.gpus_per_process = std::stol(gpus);
  const AskedCollective asked = understand(question);
  const std::string path = folder + "/" + name + ".csv";
  const CollectiveTable measured = read_collective_table(path);
  if (!asked.pricing || !measured.diagnostics.empty()) {
    throw std::runtime_error(render(asked.diagnostics, asked.sources) +
                             render(measured.diagnostics, measured.lines));
  }
  return {name, source, question.kind, *asked.pricing, measured.rows};
}

std::vector<MeasuredTable> load_tables(const std::string& folder) {
  std::ifstream list(folder + "/tables.csv");
  std::vector<MeasuredTable> tables;
  std::string line;
  while (std::getline(list, line)) {
    if (!line.starts_with('#') && !line.starts_with("table,")) {
      tables.push_back(load_table(folder, line));
    }
  }
  if (tables.empty()) {
    throw std::runtime_error(folder + "/tables.csv has no table");
  }
  return tables;
}

std::vector<CollectiveRow> judged(MeasuredTable& table,
                                  const sim::CollectiveCorrection& correction) {
  table.pricing.correct(correction);
  std::vector<CollectiveRow> rows;
  for (const CollectiveMeasurement& measured : table.rows) {
    rows.push_back(predicted_row(table.pricing, table.kind, measured.bytes));
    rows.back().measured_us = measured.time_us;
  }
  return rows;
}

double loss_of(std::vector<MeasuredTable*>& tables, const sim::CollectiveCorrection& correction) {
  constexpr double weight_of_source = 20;
  std::map<std::string, double> tables_of;
  for (const MeasuredTable* table : tables) {
    tables_of[table->source] += 1;
  }
  double loss = 0;
  for (MeasuredTable* table : tables) {
    double sum = 0;
    for (const CollectiveRow& row : judged(*table, correction)) {
      sum += std::abs(std::log(std::max(row.price.time_us(), 1e-3) / *row.measured_us));
    }
    loss +=
        weight_of_source / tables_of[table->source] * sum / static_cast<double>(table->rows.size());
  }
  for (const sim::CorrectionRow& row : sim::correction_rows()) {
    const double distance = (correction.of(row.term) - row.usual) / row.spread;
    loss += distance * distance;
  }
  return loss;
}

sim::CollectiveCorrection fit(std::vector<MeasuredTable*> tables) {
  constexpr int rounds = 40;
  constexpr double shrinks_by = 0.6;
  constexpr double least_efficiency = 0.02;
  sim::CollectiveCorrection best;
  std::array<double, sim::correction_terms> steps{};
  for (const sim::CorrectionRow& row : sim::correction_rows()) {
    best.of(row.term) = row.usual;
    steps[static_cast<size_t>(row.term)] = row.spread / 2;
  }
  double least = loss_of(tables, best);
  for (int round = 0; round < rounds; ++round) {
    for (const sim::CorrectionRow& row : sim::correction_rows()) {
      double& step = steps[static_cast<size_t>(row.term)];
      bool is_better = false;
      for (const double sign : {1.0, -1.0}) {
        sim::CollectiveCorrection tried = best;
        tried.of(row.term) = std::max(least_efficiency, tried.of(row.term) + sign * step);
        if (const double loss = loss_of(tables, tried); loss < least && !is_better) {
          least = loss;
          best = tried;
          is_better = true;
        }
      }
      step *= is_better ? 1 : shrinks_by;
    }
  }
  return best;
}

std::string percent(const std::optional<double>& error) {
  return error ? fmt::format("{:.1f} %", *error * 100) : "";
}

struct Errors {
  std::vector<CollectiveRow> plain;
  std::vector<CollectiveRow> fitted;
  std::vector<CollectiveRow> held_out;

  std::string cells() const {
    std::string text;
    for (const auto* rows : {&plain, &fitted, &held_out}) {
      text += fmt::format(" {} | {} |", percent(median_error(*rows, 0, large_from_bytes)),
                          percent(median_error(*rows, large_from_bytes, INT64_MAX)));
    }
    return text;
  }
  void add(const Errors& other) {
    plain.insert(plain.end(), other.plain.begin(), other.plain.end());
    fitted.insert(fitted.end(), other.fitted.begin(), other.fitted.end());
    held_out.insert(held_out.end(), other.held_out.begin(), other.held_out.end());
  }
};

void print_terms(const sim::CollectiveCorrection& correction) {
  fmt::print("| term | meaning | usual | spread | fitted |\n|---|---|---:|---:|---:|\n");
  for (const sim::CorrectionRow& row : sim::correction_rows()) {
    fmt::print("| `{}` | {} | {:g} | {:g} | {:.3g} |\n", row.name, row.meaning, row.usual,
               row.spread, correction.of(row.term));
  }
}

void run(const std::string& folder) {
  std::vector<MeasuredTable> tables = load_tables(folder);
  const auto without = [&tables](const std::string& source) {
    std::vector<MeasuredTable*> chosen;
    for (MeasuredTable& table : tables) {
      if (table.source != source && table.source != shared_gpu) {
        chosen.push_back(&table);
      }
    }
    return chosen;
  };
  const sim::CollectiveCorrection of_all = fit(without(""));
  print_terms(of_all);
  fmt::print(
      "\n| table | source | plain, < 64 KiB | >= 64 KiB | fitted, < 64 KiB | >= 64 KiB "
      "| held out, < 64 KiB | >= 64 KiB |\n|---|---|---:|---:|---:|---:|---:|---:|\n");
  std::map<std::string, sim::CollectiveCorrection> folds;
  Errors all;
  for (MeasuredTable& table : tables) {
    const auto [fold, is_new] = folds.try_emplace(table.source);
    if (is_new) {
      fold->second = fit(without(table.source));
    }
    const Errors errors{judged(table, sim::no_correction()), judged(table, of_all),
                        judged(table, fold->second)};
    if (table.source != shared_gpu) {
      all.add(errors);
    }
    fmt::print("| {} | {} |{}\n", table.name, table.source, errors.cells());
  }
  fmt::print("| all sizes of all tables but shared-gpu | |{}\n", all.cells());
}

}  // namespace

}  // namespace lockstep::cli

int main(int count, char** arguments) {
  try {
    lockstep::cli::run(count > 1 ? arguments[1] : LOCKSTEP_SOURCE_DIR "/data/nccl-tests");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
