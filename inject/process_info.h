// Facts about this process, its run and its machine, as properties of the profile.
#pragma once

#include <string>

namespace lamina {

class Recorder;

std::string program_name();     // of the executable, without folders
void add_process_properties(Recorder& recorder);
// Asks the CUDA driver, so not from inside of its initialisation. False while the driver is not ready.
bool add_device_properties(Recorder& recorder);

}  // namespace lamina
