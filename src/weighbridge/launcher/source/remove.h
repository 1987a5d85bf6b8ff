#ifndef REMOVE_H
#define REMOVE_H

/* As `remove FOLDER` it removes a folder with all in it, and needs no other program for that. Gives its exit code, -1
   where the words do not ask for it. */
int remove_folder(int count, char **words);

#endif
