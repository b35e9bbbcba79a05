// Graphs: where each node was created, what was cloned from what, which executable graph came of it.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string_view>

namespace lamina {

class Cupti;
class Recorder;
class ThreadLog;

// The driver calls that give a node new parameters or update an executable graph, by name. CUPTI tells only of some of
// the nodes that change, and of none that come out equal: the calls tell all.
enum class GraphCall : uint8_t { kNone, kExecUpdate, kExecNodeSetParams, kNodeSetParams };
GraphCall graph_call(std::string_view driver_function);
void on_graph_call(Recorder& recorder, ThreadLog& log, GraphCall kind, const CUpti_CallbackData& call);

void enable_graph_callbacks(Cupti& cupti);
void on_graph_event(Recorder& recorder, ThreadLog& log, CUpti_CallbackId id, const CUpti_GraphData& graph);

}  // namespace lamina
