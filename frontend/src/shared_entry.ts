/** The page in a shared file: its requests are answered from the file. */
import './api/shared_file';
import './main';
