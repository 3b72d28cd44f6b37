#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/scenario/forms/field.hpp"
#include "model/scenario/rank_selection.hpp"
#include "model/scenario/scenario.hpp"

namespace lockstep {

/// maximum_ranks where a key has a range.
inline constexpr double ranks_limit = static_cast<double>(maximum_ranks);

// The tables of the sections, one function each, and the readers that need more than a table.

Table<Scenario> scenario_table();
Table<ClusterSpec> cluster_table();
Table<GpuSpec> gpu_table();
Table<NetworkSpec> network_table();
Table<DriveSpec> nvme_table();
Table<PriceSpec> price_table();
Table<ProcessGroupSpec> process_group_table();
Table<ModelSpec> model_table();
Table<LoaderSpec> loader_table();
Table<TrainerSpec> trainer_table();
Table<FaultSpec> fault_table(FaultKind kind);
Table<VerifySpec> verify_table();
Table<LayerCost> layer_cost_table();
Table<LayerSpec> layer_extra_table();

/// Names of the faults, in the order of FaultKind.
const std::vector<std::string_view>& fault_names();

std::vector<LayerSpec> read_layers(Reader& reader, const Node& node);
/// `{weight: [[1, 2]], bias: 0}`: how parameters and buffers start.
std::optional<std::vector<TensorValues>> read_initial(Reader& reader, const Node& node,
                                                      const KeyRow& row);
/// One number, nested lists or `{csv: path}`.
std::optional<TensorValues> read_tensor_values(Reader& reader, const Node& node, const KeyRow& row);
std::optional<ModelSpec> read_model(Reader& reader, const Node& node);
std::optional<DataSpec> read_data(Reader& reader, const Node& node);
std::vector<FaultSpec> read_faults(Reader& reader, const Node& node);
std::vector<Expectation> read_expectations(Reader& reader, const Node& node);
std::optional<ProgramSpec> read_program(Reader& reader, const Node& node);

/// Complains about a code that no finding has.
void check_code(Reader& reader, const std::string& code, const SourcePlace& place);
/// Results that nothing gives, types that do not fit, missing cases.
void check_expectations(Reader& reader, const Scenario& scenario,
                        const std::vector<std::string>& cases);

/// Finds errors of a whole scenario in the file alone: keys that cannot be combined,
/// names that nothing binds.
/// `cases` are the names of all cases of the file.
void check_scenario(Reader& reader, const Scenario& scenario,
                    const std::vector<std::string>& cases);

}  // namespace lockstep
